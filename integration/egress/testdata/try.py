# Tries what must not work: each argument is one thing, "KIND WORDS", and one
# line says how it went, by the error's name.
import errno, os, socket, struct, sys

TYPES = {"A": 1, "NS": 2, "CNAME": 5, "SOA": 6, "PTR": 12, "MX": 15, "TXT": 16, "AAAA": 28, "SRV": 33, "SVCB": 64, "HTTPS": 65, "ANY": 255, "AXFR": 252}
RCODES = ["NOERROR", "FORMERR", "SERVFAIL", "NXDOMAIN", "NOTIMP", "REFUSED"]


def family(addr):
    return socket.AF_INET6 if ":" in addr else socket.AF_INET


def talk(s):
    """What a connection gives when something is sent on it."""
    s.settimeout(20)
    s.sendall(b"GET / HTTP/1.0\r\n\r\n")
    n = 0
    while True:  # to the end: closing with bytes unread would be a reset
        b = s.recv(4096)
        n += len(b)
        if not b:
            return "data" if n else "eof"


def tcp(addr, port):
    s = socket.socket(family(addr), socket.SOCK_STREAM)
    s.connect((addr, int(port)))
    return talk(s)


def once(addr, port):
    """A server that answers what it is sent."""
    s = socket.create_connection((addr, int(port)))
    s.sendall(b"x")
    s.shutdown(socket.SHUT_WR)
    return "data" if s.recv(9) == b"x" and s.recv(1) == b"" else "eof"


def named(name, port):
    """The way of a program: the resolver, then a connection to each address."""
    try:
        infos = socket.getaddrinfo(name, int(port), type=socket.SOCK_STREAM)
    except socket.gaierror as e:
        return {socket.EAI_NONAME: "EAI_NONAME", socket.EAI_AGAIN: "EAI_AGAIN", socket.EAI_NODATA: "EAI_NODATA"}.get(e.errno, str(e))
    except UnicodeError:
        return "UnicodeError"
    out = set()
    for f, _, _, _, to in infos:
        s = socket.socket(f, socket.SOCK_STREAM)
        try:
            s.connect(to)
            out.add(talk(s))
        except OSError as e:
            out.add(errno.errorcode[e.errno])
    return "|".join(sorted(out))


def udp(addr, port):
    s = socket.socket(family(addr), socket.SOCK_DGRAM)
    s.connect((addr, int(port)))
    s.settimeout(20)
    s.send(b"\xc3\0\0\0\1" + bytes(1200))
    s.recv(1)
    return "data"


def sock(f, kind, proto):
    socket.socket(getattr(socket, f), getattr(socket, kind), int(proto))
    return "made"


def question(name, kind, raw=None):
    labels = raw if raw is not None else b"".join(bytes([len(l)]) + l.encode("latin1") for l in name.split(".") if l) + b"\0"
    return struct.pack(">6H", 0x5a6c, 0x100, 1, 0, 0, 0) + labels + struct.pack(">2H", TYPES[kind], 1)


def ask(msg):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.connect(("127.0.0.1", 53))
    s.settimeout(20)
    s.send(msg)
    return s.recv(4096)


def dns(name, kind):
    b = ask(question(name, kind))
    return "%s %d" % (RCODES[b[3] & 15], struct.unpack(">H", b[6:8])[0])


def dnshex(text, kind):
    b = ask(question("", kind, bytes.fromhex(text)))
    return "%s %d" % (RCODES[b[3] & 15], struct.unpack(">H", b[6:8])[0])


def answer(name):
    return socket.inet_ntoa(ask(question(name, "A"))[-4:])


def port(name, number):
    """Another port of a listed name's own address."""
    return tcp(answer(name), number)


def udpto(name, number):
    return udp(answer(name), number)


def bound(source, name, number):
    s = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    s.bind((source, 0))
    s.connect((answer(name), int(number)))
    return talk(s)


def device(name, addr, number):
    s = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, name.encode() + b"\0")
    s.connect((addr, int(number)))
    return talk(s)


def option(level, name, value):
    s = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    s.setsockopt(int(level), int(name), int(value))
    return "set"


def listen(addr, number):
    s = socket.socket(family(addr), socket.SOCK_STREAM)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind((addr, int(number)))
    s.listen()
    return "listens"


def descriptors():
    """What is open, what lists it left out."""
    return " ".join(sorted(n for n in os.listdir("/proc/self/fd") if os.path.lexists("/proc/self/fd/" + n)))


def mapped(name, number):
    """A listed name's address in the form of the other family."""
    return tcp("::ffff:" + answer(name), number)


def reuse(number):
    s = socket.socket(socket.AF_INET6, socket.SOCK_STREAM)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    s.bind(("::", int(number)))
    s.listen()
    return "listens"


for arg in sys.argv[1:]:
    kind, *words = arg.split(" ")
    try:
        result = globals()[kind](*words)
    except socket.timeout:
        result = "silence"
    except OSError as e:
        result = errno.errorcode[e.errno]
    print(arg, "->", result, flush=True)
