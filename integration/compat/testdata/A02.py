# A02: BLAS thread pool against pids limit. Importing numpy starts one BLAS thread per host core,
# so a tight pids limit (or a memory limit, ~32 MB per thread) kills plain scientific code on a
# many-core host although it works on a laptop.
import os, sys, threading
cpus = len(os.sched_getaffinity(0))
knobs = {k: os.environ.get(k) for k in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS") if os.environ.get(k)}
want = max(4, int(next(iter(knobs.values()))) if knobs else cpus)
gate, pool = threading.Event(), []
try:
    for _ in range(want):
        th = threading.Thread(target=gate.wait); th.start(); pool.append(th)
except RuntimeError as err:
    gate.set(); print(f"FAIL: only {len(pool)} of {want} pool threads could start: {err}"); sys.exit(1)
gate.set()
for th in pool: th.join()
try:
    import numpy as np
    a = np.ones((300, 300)); assert float((a @ a)[0, 0]) == 300.0
    note = "numpy ok"
except ImportError:
    note = "numpy absent, pool emulated"
print("cpus", cpus, "knobs", knobs, note); print("PASS")
