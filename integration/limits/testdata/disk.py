# disk.py WAY: fills the scratch by one way, then says what stopped it, what the file system counts
# and whether one more byte fits anywhere. disk.py mounts: every mount that can be written, and its bounds.
import ctypes, errno, mmap, os, signal, socket, stat, sys
libc = ctypes.CDLL(None, use_errno=True)
PAGE, CHUNK = 4096, 64 << 10
block, fds = b"x" * CHUNK, []


def new(n):
    fd = os.open(f"/tmp/f{n}", os.O_CREAT | os.O_RDWR, 0o600)
    fds.append(fd)
    return fd


def allocate(fd, mode, at, size):
    if libc.fallocate(fd, mode, ctypes.c_long(at), ctypes.c_long(size)):
        raise OSError(ctypes.get_errno(), "fallocate")


def written(n): os.pwrite(new(0), block, n * CHUNK)


def holes(n):  # first larger than all there is, then filled from behind
    fd = new(0) if n == 0 else fds[0]
    if n == 0: os.truncate(fd, 8 << 20)
    os.pwrite(fd, block, (8 << 20) - (n % 128 + 1) * CHUNK) if n < 128 else os.pwrite(new(1), block, n * CHUNK)


def mapped(n):  # a fault on a full disk is a SIGBUS: by a process of its own
    fd = new(n)
    os.truncate(fd, CHUNK)
    pid = os.fork()
    if pid == 0:
        mmap.mmap(fd, CHUNK).write(block)
        os._exit(0)
    if os.WTERMSIG(os.waitpid(pid, 0)[1]) == signal.SIGBUS: raise OSError(errno.ENOSPC, "SIGBUS")


def reserved(n): allocate(new(0), 1, n * CHUNK, CHUNK)  # FALLOC_FL_KEEP_SIZE: a file of no length
def small(n): os.write(new(n), b"x")
def deleted(n): os.unlink(f"/tmp/f{n}") if os.write(new(n), block) else None
def links(n): os.symlink("x" * 4000, f"/tmp/l{n}")
def copied(n): os.copy_file_range(source, new(n), CHUNK, 0)
def sent(n): os.sendfile(new(n), source, 0, CHUNK)


def spliced(n):
    os.write(pipe[1], b"x" * PAGE)
    try: os.splice(pipe[0], new(0), PAGE, offset_dst=n * PAGE)
    except AttributeError: os.pwrite(new(0), os.read(pipe[0], PAGE), n * PAGE)  # before Python 3.10


def shared(n):  # by a process that has ended, on descriptors that are on their way
    fd = new(n)
    os.write(fd, block)
    os.unlink(f"/tmp/f{n}")
    socket.send_fds(pair[0], [b"x"], [fd])
    os.close(fds.pop())


def mounts():
    found, devices = set(), set()
    for line in open("/proc/self/mountinfo"):
        f, at = line.split(), os.stat(line.split()[4])
        if "rw" not in f[5].split(",") or stat.S_ISCHR(at.st_mode): continue  # a device file holds nothing
        v = os.statvfs(f[4])
        found.add(f"{f[4]} {f[f.index('-') + 1]} {v.f_blocks * v.f_frsize} {v.f_files}")
        if f[f.index("-") + 1] == "tmpfs": devices.add(at.st_dev)
    print(*sorted(found), f"on {len(devices)} tmpfs", sep="\n")


if sys.argv[1] == "mounts": sys.exit(mounts())
source, pipe, pair = os.open("/tmp/source", os.O_CREAT | os.O_RDWR), os.pipe(), socket.socketpair()
os.write(source, block)
way, n = globals()[sys.argv[1]], 0
try:
    while n < 1 << 20: way(n); n += 1; len(fds) > 900 and os.close(fds.pop(1))
except OSError as e: why = errno.errorcode[e.errno]
for place in ("/tmp", "/work", "/dev/shm", "/var/tmp", "/out", os.environ["HOME"]):
    try:
        while True: os.write(os.open(f"{place}/more", os.O_CREAT | os.O_WRONLY | os.O_APPEND), b"x" * PAGE)
    except OSError as e: assert e.errno == errno.ENOSPC, e
v = os.statvfs("/tmp")
print(why, "used", (v.f_blocks - v.f_bfree) * v.f_frsize)
