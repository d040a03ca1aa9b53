# B01: fork bomb. A fork bomb takes the host, or the sandbox's own supervisor, down: no pids
# limit, or RLIMIT_NPROC that counts per uid (shared by all sandboxes, void for root).
import errno, os, sys, time
made = 0
while made < 2000:
    try: pid = os.fork()
    except OSError as e:
        print(f"fork refused: {errno.errorcode[e.errno]}"); break
    if pid == 0:
        time.sleep(30); os._exit(0)
    made += 1
lim = int(os.environ.get("PIDS_LIMIT", "64")); print("made", made, "PASS" if made < lim else "FAIL: over the process limit", flush=True)
