# inflight.py: sends descriptors that nobody takes until the kernel refuses, says
# why, and holds them until end of file.
import array
import errno
import os
import socket
import sys

null = os.open("/dev/null", os.O_RDONLY)
keep = []
why = "no end"
try:
    for _ in range(60):
        a, b = socket.socketpair()
        keep.extend([a, b])
        a.setblocking(False)
        for _ in range(4):
            a.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [null] * 253))])
except OSError as e:
    why = errno.errorcode[e.errno]
print("refused", why, flush=True)
sys.stdin.read()
