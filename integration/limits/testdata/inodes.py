# inodes.py: makes as many of each kind of name as there can be, and says how many that were.
import errno, os, socket
os.chdir("/tmp")


def tmpfile(n): keep.append(os.open(".", os.O_TMPFILE | os.O_RDWR, 0o600))
def deleted(n): keep.append(os.open(n, os.O_CREAT | os.O_RDWR, 0o600)); os.unlink(n)
def link(n): os.link("first", n) if os.path.exists("first") else os.close(os.open("first", os.O_CREAT, 0o600))


def sock(n):
    s = socket.socket(socket.AF_UNIX)
    s.bind(n)
    s.close()


print("free", os.statvfs(".").f_ffree)
for kind, make in (("file", lambda n: os.close(os.open(n, os.O_CREAT, 0o600))), ("directory", os.mkdir),
                   ("symlink", lambda n: os.symlink("x", n)), ("fifo", os.mkfifo), ("socket", sock), ("link", link),
                   ("tmpfile", tmpfile), ("deleted", deleted)):
    made, keep = 0, []
    try:
        while made < 1 << 20: make(f"n{made}"); made += 1
    except OSError as e: print(kind, made, errno.errorcode[e.errno])
    for fd in keep: os.close(fd)
    for n in os.listdir("."): os.rmdir(n) if os.path.isdir(n) and not os.path.islink(n) else os.unlink(n)
fd, size = os.open("x", os.O_CREAT | os.O_RDWR), 0
try:
    while size < 1 << 30: os.setxattr(fd, f"user.{size}", b"x" * 1024); size += 1024
except OSError as e: print("attributes", size, errno.errorcode[e.errno])
