# B03: timeout and double-forked daemon. The timeout kills only the direct child (or its process
# group); a double-forked setsid daemon lives on, keeps the output pipe open, and the runner waits
# for that pipe - so the timeout does not even end the call.
import os, sys, time
secs = float(os.environ.get("SECS", "300"))
print("started", flush=True)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execvp(sys.executable, [sys.executable, "-c", f"import time; time.sleep({secs})", "b03-daemon"])
    os._exit(0)
time.sleep(secs); print("FAIL: nobody stopped me")
