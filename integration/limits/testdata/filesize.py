# filesize.py FILE LIMIT: makes a file larger than it may be, by every way, and says what the kernel says.
import ctypes, errno, mmap, os, signal, sys
path, limit = sys.argv[1], int(sys.argv[2])
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
libc = ctypes.CDLL(None, use_errno=True)


def fallocate(fd):
    if libc.fallocate(fd, 0, ctypes.c_long(0), ctypes.c_long(limit + 1)): raise OSError(ctypes.get_errno(), "fallocate")


def append(fd):
    os.truncate(fd, limit)
    os.close(fd)
    with open(path, "ab", 0) as f: f.write(b"x")


def splice(fd):
    r, w = os.pipe()
    os.write(w, b"x")
    try: os.splice(r, fd, 1, offset_dst=limit)
    except AttributeError: os.pwrite(fd, b"x", limit)  # before Python 3.10


def grown(fd):  # a mapping that goes beyond the end of its file does not make it longer
    os.truncate(fd, limit)
    m = mmap.mmap(fd, limit)
    os.truncate(fd, limit - 1)
    m.resize(limit + mmap.PAGESIZE)


source = os.open(path + ".source", os.O_CREAT | os.O_RDWR, 0o600)
os.write(source, b"x")
for name, way in (("write", lambda fd: (os.pwrite(fd, b"xx", limit - 1) == 1 and os.pwrite(fd, b"x", limit))),
                  ("truncate", lambda fd: os.truncate(path, limit + 1)), ("ftruncate", lambda fd: os.ftruncate(fd, limit + 1)),
                  ("fallocate", fallocate), ("append", append), ("splice", splice), ("resize", grown),
                  ("sendfile", lambda fd: os.lseek(fd, limit, 0) and os.sendfile(fd, source, 0, 1)),
                  ("copy", lambda fd: os.copy_file_range(source, fd, 1, 0, limit))):
    fd, said = os.open(path, os.O_CREAT | os.O_RDWR | os.O_TRUNC, 0o600), "done"
    try: way(fd)
    except OSError as e: said = errno.errorcode[e.errno]
    print(name, said, *["larger"] * (os.stat(path).st_size > limit))
