import errno, socket, sys, time
addrs = [socket.getaddrinfo("r%d.example" % i, 80, socket.AF_INET, socket.SOCK_STREAM)[0][4] for i in range(int(sys.argv[2]))]
def get(to):
    try:
        s = socket.create_connection(to)
        s.sendall(b"GET / HTTP/1.0\r\n\r\n")
        n = 0
        while True:
            b = s.recv(4096)
            if not b:
                return "data" if n else "eof"
            n += len(b)
    except OSError as e:
        return errno.errorcode[e.errno]
for a in addrs:
    print(get(a), flush=True)
time.sleep(float(sys.argv[1]))
for a in addrs:
    print(get(a), flush=True)
