# B08: CPU time of children. CPU time is limited per process (RLIMIT_CPU), so a program with many
# short-lived or parallel children uses far more than its share, and the report shows the parent's
# few milliseconds only.
import os, time
end = time.monotonic() + float(os.environ.get("SECS", "15"))
print("burning", flush=True)
while time.monotonic() < end:                       # four at a time, each far below any per-process limit
    kids = []
    for _ in range(4):
        p = os.fork()
        if p == 0:
            t = time.monotonic() + 0.2
            while time.monotonic() < t: pass
            os._exit(0)
        kids.append(p)
    for p in kids: os.waitpid(p, 0)
print("done FAIL: children's CPU time was free")
