# Connections of all kinds: the first argument says which.
import errno, os, socket, sys, time

def dial(host="v4.good.example", port=7000):
    return socket.create_connection((host, int(port)))

def err(f):
    try:
        return f()
    except socket.timeout:
        return "silence"
    except OSError as e:
        return errno.errorcode[e.errno]

def to_end(s):
    n = 0
    while True:
        b = s.recv(65536)
        if not b:
            return n
        n += len(b)

def one(port=7000):
    """Says that it is connected, and waits for its end."""
    s = dial(port=port)
    s.sendall(b"x")
    print("connected", s.recv(1), flush=True)
    print(err(lambda: s.recv(1)), flush=True)

def daemon():
    """A child that holds the connection when the program is over."""
    s = dial()
    s.sendall(b"x")
    s.recv(1)
    if os.fork() == 0:
        os.setsid()
        time.sleep(3600)
    print("over", flush=True)

def hold():
    """Ends with the connection open."""
    s = dial()
    s.sendall(b"x")
    s.recv(1)
    print("over", flush=True)
    os._exit(0)

def many(count, held, *host):
    """Opens count connections; each says whether it got an answer."""
    got, keep = {}, []
    for i in range(int(count)):
        def f():
            s = dial(*host)
            keep.append(s)
            s.settimeout(20)
            s.sendall(b"x")
            r = s.recv(1).decode() or "eof"
            if held != "held":
                s.close()
            return r
        r = err(f)
        got[r] = got.get(r, 0) + 1
    print(sorted(got.items()), flush=True)

def waiting(count, first):
    """first of count are served, the others when those are closed."""
    count, first = int(count), int(first)
    list = [dial() for _ in range(count)]
    for s in list:
        s.sendall(b"x")
    import select
    ready = []
    while len(ready) < first:
        for s in select.select([s for s in list if s not in ready], [], [])[0]:
            s.recv(1)
            ready.append(s)
    print("first", len(ready), len(select.select([s for s in list if s not in ready], [], [], 0.3)[0]), flush=True)
    for s in ready:
        s.close()
    rest = [s for s in list if s not in ready]
    served = 0
    while rest:
        for s in select.select(rest, [], [])[0]:
            served += len(s.recv(1))
            s.close()
            rest.remove(s)
    print("then", served, flush=True)

def up(port, total):
    s = dial(port=port)
    total = int(total)
    def f():
        left = total
        while left:
            left -= s.send(bytes(min(left, 65536)))
        s.shutdown(socket.SHUT_WR)
        return s.recv(1) or "eof"
    print(err(f), flush=True)

def stream():
    """Sends when it is told to, until that fails."""
    s = dial()
    print("connected", flush=True)
    sys.stdin.read()
    def f():
        while True:
            s.send(bytes(65536))
    print(err(f), flush=True)

def down(port):
    s = dial(port=port)
    n = 0
    try:
        while True:
            b = s.recv(65536)
            if not b:
                print("eof", n)
                return
            n += len(b)
    except OSError as e:
        print(errno.errorcode[e.errno], n, flush=True)

def half(port):
    """Closes its side first, and reads what comes after that."""
    s = dial(port=port)
    s.sendall(b"question")
    s.shutdown(socket.SHUT_WR)
    print(err(lambda: to_end(s)), flush=True)

def after(port):
    """The server closes its side first, and reads what comes after that."""
    s = dial(port=port)
    print(to_end(s), flush=True)
    s.sendall(b"answer")
    s.shutdown(socket.SHUT_WR)
    s.close()

def flood(seconds):
    """As many connections as can be, kept open, by eight processes."""
    end = time.monotonic() + float(seconds)
    for _ in range(7):
        if os.fork() == 0:
            break
    keep = []
    while time.monotonic() < end:
        try:
            s = socket.socket()
            s.setblocking(False)
            s.connect_ex((ADDR, 7000))
            keep.append(s)
            if len(keep) > 500:
                keep.pop(0).close()
        except OSError:
            pass
    os._exit(0)

ADDR = ""
if sys.argv[1] == "flood":
    ADDR = socket.getaddrinfo("v4.good.example", 7000, socket.AF_INET)[0][4][0]
    print("flooding", flush=True)
globals()[sys.argv[1]](*sys.argv[2:])
