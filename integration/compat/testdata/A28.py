# A28: open-files limit too high or too low. An open-files limit of 2^30 makes programs that close
# every possible descriptor before exec spin for minutes; a limit of 32 or 64 makes ordinary
# programs fail with EMFILE.
import os, resource, sys, time
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE); bad = []
if not 256 <= soft <= 1 << 20: bad.append(f"soft limit {soft}")
if hard > 1 << 21: bad.append(f"hard limit {hard}")
t0 = time.monotonic(); n = min(soft, 1 << 22)
for fd in range(3, n):
    try: os.get_inheritable(fd)
    except OSError: pass
    if time.monotonic() - t0 > 5: bad.append(f"walking the table to {n} takes over 5 s"); break
try: fs = [open("/dev/null") for _ in range(200)]
except OSError as e: bad.append(f"200 open files: {e.strerror}")
print("FAIL: " + "; ".join(bad) if bad else "PASS"); sys.exit(bool(bad))
