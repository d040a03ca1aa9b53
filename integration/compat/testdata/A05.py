# A05: asyncio wake-up lost. A filter that denies sendto() also denies send() on a socketpair;
# asyncio swallows the EPERM of its wake-up socket and the loop sleeps for ever - a hang without
# any message.
import asyncio, socket, sys, threading, time
a, b = socket.socketpair(); a.send(b"\0"); assert b.recv(1) == b"\0"
a.sendmsg([b"hi"]); assert b.recv(2) == b"hi"
loop = asyncio.new_event_loop(); threading.Thread(target=loop.run_forever, daemon=True).start()
t0 = time.monotonic()
try:
    assert asyncio.run_coroutine_threadsafe(asyncio.sleep(0, 42), loop).result(timeout=2) == 42
except Exception as err:
    print(f"FAIL: cross-thread wake-up lost: {err!r}"); sys.exit(1)
async def child():
    p = await asyncio.create_subprocess_exec(sys.executable, "-c", "print(5)", stdout=asyncio.subprocess.PIPE)
    out, _ = await p.communicate(); return out.strip(), p.returncode
assert asyncio.run(child()) == (b"5", 0)
print(f"wake-up {1000 * (time.monotonic() - t0):.0f} ms"); print("PASS")
