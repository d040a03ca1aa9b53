# B20: kill 1 and kill -1. Kill(1, 9) or kill(-1, 9) from the payload hits the in-sandbox init or,
# where the pid namespace is shared, the runner itself; the run is then reported as "internal
# error", or the service dies.
import os, signal, sys
procs = [p for p in os.listdir("/proc") if p.isdigit()]
if len(procs) > 8 or "I_AM_IN_A_SANDBOX" not in os.environ: print("REFUSED: does not look like a sandbox"); sys.exit(77)
for s in (signal.SIGTERM, signal.SIGKILL, signal.SIGSTOP):
    try: os.kill(1, s)
    except OSError: pass  # refused by Landlock; elsewhere the kernel drops it
print("init survived", flush=True)
try: os.kill(-1, signal.SIGKILL)
except ProcessLookupError: pass  # nobody but init and this process
sys.exit(4)
