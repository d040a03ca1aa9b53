# Threads, processes by fork, vfork and spawn, files, time, sockets, events: what
# C libraries of different ages do by different system calls.
import os, select, signal, socket, stat, sys, threading, time
out = []
t = [threading.Thread(target=out.append, args=(i,)) for i in range(8)]
[x.start() for x in t]; [x.join() for x in t]
assert sorted(out) == list(range(8))
pid = os.fork()
if pid == 0: os._exit(7)
assert os.waitpid(pid, 0)[1] == 7 << 8
pid = os.posix_spawn("/bin/sh", ["sh", "-c", "exit 3"], {})
assert os.waitpid(pid, 0)[1] == 3 << 8
import subprocess
assert subprocess.check_output(["echo", "hi"]) == b"hi\n"
os.mkdir("/tmp/d"); fd = os.open("/tmp/d/f", os.O_RDWR | os.O_CREAT, 0o640); os.write(fd, b"abc")
os.chmod("/tmp/d/f", 0o600); os.utime("/tmp/d/f", (1, 2)); os.rename("/tmp/d/f", "/tmp/d/g"); os.symlink("g", "/tmp/d/l")
assert stat.S_IMODE(os.stat("/tmp/d/l").st_mode) == 0o600 and os.stat("/tmp/d/g").st_mtime == 2
assert os.access("/tmp/d/g", os.R_OK, effective_ids=True) and os.access("/tmp/d/l", os.R_OK, follow_symlinks=False)
try: os.chmod("/tmp/d/g", 0o4755); raise SystemExit("set-uid")
except PermissionError: pass
os.sendfile(os.open("/tmp/d/h", os.O_WRONLY | os.O_CREAT), fd, 0, 3)
assert sorted(os.listdir("/tmp/d")) == ["g", "h", "l"] and [e.name for e in os.scandir("/tmp/d") if e.is_symlink()] == ["l"]
a, b = socket.socketpair(); a.send(b"x")
assert select.select([b], [], [], 9)[0] == [b]
p = select.poll(); p.register(b); e = select.epoll(); e.register(b); assert p.poll(9) and e.poll(9)
s = socket.create_server(("127.0.0.1", 0)); c = socket.create_connection(s.getsockname()); s.accept()[0].send(b"y"); assert c.recv(1) == b"y"
signal.signal(signal.SIGALRM, lambda *_: out.append("alarm")); signal.setitimer(signal.ITIMER_REAL, 0.001); signal.pause()
assert out[-1] == "alarm"
time.sleep(0.001); time.clock_gettime(time.CLOCK_MONOTONIC); os.getrandom(4); os.sched_yield(); os.sched_getaffinity(0); os.times()
print("PASS glibc", os.confstr("CS_GNU_LIBC_VERSION").split()[1], "python", "%d.%d" % sys.version_info[:2])
