# A program with a resolver of its own: a query by UDP, then by TCP, then a
# connection to the address that came back, without a libc in between.
import socket, struct, sys
name = sys.argv[1]
q = struct.pack(">6H", 0x1234, 0x100, 1, 0, 0, 0) + b"".join(bytes([len(l)]) + l.encode() for l in name.split(".")) + b"\0\0\1\0\1"
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
u.sendto(q, ("127.0.0.1", 53))
a = u.recv(512)
t = socket.create_connection(("127.0.0.1", 53))
t.sendall(struct.pack(">H", len(q)) + q)
b = t.recv(512)[2:]
print("same", a == b)
addr = socket.inet_ntoa(a[-4:])
print(addr.rsplit(".", 2)[0])
s = socket.create_connection((addr, 80))
s.sendall(b"GET / HTTP/1.0\r\nHost: by.address\r\n\r\n")
text = b""
while True:
    d = s.recv(4096)
    if not d:
        break
    text += d
print(text.split(b"\r\n\r\n")[1].decode(), end="")
