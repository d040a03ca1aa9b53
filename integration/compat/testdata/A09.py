# A09: /dev nodes and /dev/stdout by path. /dev nodes missing, read-only or of the wrong kind; or
# stdout is a socket, so that opening /dev/stdout by path fails with ENXIO (many tools take
# "/dev/stdout" as an output file).
import errno, os, stat, sys
bad = []
for n in ("null", "zero", "full", "random", "urandom"):
    try:
        if not stat.S_ISCHR(os.stat("/dev/" + n).st_mode): bad.append(n + " is no character device")
    except OSError as e: bad.append(f"{n}: {e.strerror}")
def attempt(what, fn):
    try: fn()
    except Exception as e: bad.append(f"{what}: {e!r}")
attempt("write null", lambda: open("/dev/null", "w").write("x"))
attempt("read zero", lambda: open("/dev/zero", "rb").read(16) == bytes(16) or 1 / 0)
attempt("urandom", lambda: len(open("/dev/urandom", "rb").read(16)) == 16 or 1 / 0)
try:
    fd = os.open("/dev/full", os.O_WRONLY); os.write(fd, b"x"); bad.append("full accepted data")
except OSError as e:
    if e.errno != errno.ENOSPC: bad.append(f"full: {e.strerror}")
attempt("open /dev/stdout by path", lambda: os.write(os.open("/dev/stdout", os.O_WRONLY | os.O_APPEND), b"via path\n"))
attempt("open /dev/stderr by path", lambda: os.close(os.open("/dev/stderr", os.O_WRONLY | os.O_APPEND)))
attempt("list /dev/fd", lambda: os.listdir("/dev/fd"))
print("FAIL: " + "; ".join(bad) if bad else "PASS"); sys.exit(bool(bad))
