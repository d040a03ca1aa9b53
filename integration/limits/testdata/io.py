# io.py WAY FILE: moves 3 MiB from or to a disk by one way, and says how many bytes those were.
import mmap, os, sys
way, path, size = sys.argv[1], sys.argv[2], 3 << 20
room, done = mmap.mmap(-1, 64 << 10), 0
flags = {"direct": os.O_DIRECT, "direct-write": os.O_DIRECT, "sync-write": os.O_SYNC, "dsync-write": os.O_DSYNC}.get(way, 0)
fd = os.open(path, flags | (os.O_RDWR | os.O_CREAT if "write" in way else os.O_RDONLY), 0o600)
if way == "mapped":
    m = mmap.mmap(fd, size, prot=mmap.PROT_READ)
    done = sum(4096 for at in range(0, size, 4096) if m[at] == 0)
elif way == "sent":
    out = os.open("/tmp/x", os.O_CREAT | os.O_WRONLY)
    while (n := os.sendfile(out, fd, done, 1 << 20)) > 0: done += n
elif "write" in way:
    while done < size: done += os.writev(fd, [room])
    os.fsync(fd)
else:
    if way == "ahead": os.posix_fadvise(fd, 0, size, os.POSIX_FADV_WILLNEED)
    while (n := os.readv(fd, [room])) > 0: done += n
print(done)
