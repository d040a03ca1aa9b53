# A20: loopback down, localhost unresolved. A fresh network namespace leaves lo DOWN, or
# /etc/hosts has no "localhost", so tests that start a local server, bazel, jupyter kernels and
# XML-RPC fail with "Network is unreachable" though no outside network is needed.
import socket, sys, threading, time
def roundtrip(fam, addr):
    srv = socket.socket(fam); srv.bind((addr, 0)); srv.listen(1); port = srv.getsockname()[1]
    th = threading.Thread(target=lambda: srv.accept()[0].sendall(b"ok")); th.start()
    with socket.create_connection((addr, port), 2) as c: assert c.recv(2) == b"ok"
    th.join()
roundtrip(socket.AF_INET, "127.0.0.1")
t0 = time.monotonic(); names = {a[4][0] for a in socket.getaddrinfo("localhost", 80)}; took = time.monotonic() - t0
assert "127.0.0.1" in names, names
assert took < 1, f"localhost look-up took {took:.1f} s"
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); u.bind(("127.0.0.1", 0)); u.sendto(b"x", u.getsockname()); assert u.recv(1) == b"x"
try: roundtrip(socket.AF_INET6, "::1"); v6 = "v6 ok"
except OSError as e: v6 = f"v6 absent ({e.strerror})"
print(v6); print("PASS")
