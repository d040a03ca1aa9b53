# modest.py: locks, connections and sockets in numbers that a program has.
import errno
import fcntl
import socket
import struct
import sys

with open("/tmp/locked", "w") as f:
    try:
        fcntl.fcntl(f, 37, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 0, 1, 0))  # F_OFD_SETLK
    except OSError as e:
        print(errno.errorcode[e.errno], flush=True)
    for i in range(2000):
        fcntl.lockf(f, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 2 * i)
    print("locks 2000", flush=True)
    server = socket.socket()
    server.bind(("127.0.0.1", 0))
    server.listen(300)
    ends = []
    for _ in range(200):
        c = socket.create_connection(server.getsockname())
        c.sendall(b"x" * 10000)
        c.close()
    for _ in range(200):
        a, _ = server.accept()
        ends.append(len(a.recv(20000, socket.MSG_WAITALL)) == 10000)
    print("connections", sum(ends), flush=True)
    print("sockets", len([socket.socket() for _ in range(200)]), flush=True)
sys.exit(0)
