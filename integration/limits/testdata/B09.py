# B09: memory counted per process. Memory is limited per process, so N children may use N times
# the limit.
import os, time
kids = []
for i in range(10):
    p = os.fork()
    if p == 0:
        b = bytearray(80 << 20)
        for o in range(0, len(b), 4096): b[o] = 1
        time.sleep(4); os._exit(0)
    kids.append(p)
ok = all(os.waitpid(p, 0)[1] == 0 for p in kids)
print("all held FAIL: 800 MB under a 256 MB limit" if ok else "some child was killed", flush=True)
