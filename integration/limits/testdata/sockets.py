# sockets.py tcp|udp: fills the buffers of 400 sockets over the loopback and says
# how much was tried and, where cgroup v1 counts them, how much they held.
import socket
import sys

LARGE = 4 << 20
tried = 0
keep = []


def tcp():
    global tried
    server = socket.socket()
    server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, LARGE)
    server.bind(("127.0.0.1", 0))
    server.listen(500)
    server.settimeout(1)
    for _ in range(400):
        c = socket.socket()
        c.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, LARGE)
        c.settimeout(1)
        c.connect(server.getsockname())
        a, _ = server.accept()
        keep.extend([c, a])
        c.setblocking(False)
        try:
            for _ in range(100):
                tried += 1 << 16
                c.send(b"x" * (1 << 16))
        except BlockingIOError:
            pass


def udp():
    global tried
    for _ in range(400):
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2 * LARGE)
        s.bind(("127.0.0.1", 0))
        s.connect(s.getsockname())
        keep.append(s)
        s.setblocking(False)
        try:
            for _ in range(20):
                tried += 60000
                s.send(b"x" * 60000)
        except OSError:
            pass


try:
    tcp() if sys.argv[1] == "tcp" else udp()
except OSError:
    pass  # no room for one more connection: that is the limit at work
print("tried", tried)
try:
    print("held", open("/sys/fs/cgroup/memory/memory.kmem.tcp.max_usage_in_bytes").read().strip())
except OSError:
    pass
