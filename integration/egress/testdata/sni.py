# TLS hellos for a connection to one name: each argument says which.
import errno, socket, ssl, struct, sys

def handshake(host, sni, port=443, cut=None, send=None):
    ctx = ssl.create_default_context(cafile="/ca.pem")
    ctx.check_hostname = False
    inb, outb = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = ctx.wrap_bio(inb, outb, server_hostname=sni)
    s = socket.create_connection((host, port))
    s.settimeout(20)
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    first = True
    def flush():
        nonlocal first
        b = outb.read()
        if first and b:
            first = False
            if cut:  # the hello in records of few bytes, one packet each
                kind, version, body = b[:1], b[1:3], b[5:]
                for i in range(0, len(body), cut):
                    part = body[i:i + cut]
                    s.sendall(kind + version + struct.pack(">H", len(part)) + part)
                return
        s.sendall(b)
    def step(f):
        while True:
            try:
                r = f()
                flush()
                return r
            except ssl.SSLWantReadError:
                flush()
                b = s.recv(65536)
                if not b:
                    raise EOFError
                inb.write(b)
    step(tls.do_handshake)
    step(lambda: tls.write(b"GET / HTTP/1.0\r\nHost: inner\r\n\r\n"))
    text = b""
    while b"hello from" not in text:
        text += step(lambda: tls.read(4096))
    return "data"

def plain(host, text, port=443):
    s = socket.create_connection((host, port))
    s.settimeout(20)
    s.sendall(text)
    return "data" if s.recv(1) else "eof"

H = "v4.good.example"
cases = {
    "right": lambda: handshake(H, H),
    "case": lambda: handshake(H, H.upper()),
    "other": lambda: handshake(H, "other.example"),
    "shared": lambda: handshake(H, "shared.example"),
    "parent": lambda: handshake(H, "good.example"),
    "longer": lambda: handshake(H, H + ".evil.example"),
    "none": lambda: handshake(H, None),
    "fragments": lambda: handshake(H, H, cut=7),
    "bytes": lambda: handshake(H, H, cut=1),
    "fragments of another": lambda: handshake(H, "other.example", cut=7),
    "http": lambda: plain(H, b"GET / HTTP/1.0\r\n\r\n"),
    "ssh": lambda: plain(H, b"SSH-2.0-x\r\n"),
    "random": lambda: plain(H, bytes(range(256)) * 8),
    "cut short": lambda: plain(H, b"\x16\x03\x01\x02\x00\x01"[:5] + b"\x02" * 600),
    "other 8443": lambda: handshake(H, "other.example", 8443),
    "http 8443": lambda: plain(H, b"GET / HTTP/1.0\r\n\r\n", 8443),
}
for name in sys.argv[1:]:
    try:
        result = cases[name]()
    except OSError as e:
        result = errno.errorcode.get(e.errno, str(e))
    except EOFError:
        result = "eof"
    print(name, "->", result, flush=True)
