# A25: payload as PID 1 ignores its own signals. The payload itself is PID 1, so the kernel drops
# signals without a handler: raise(SIGTERM) is a no-op, abort() turns into a SIGSEGV verdict, and
# "kill -9 $$" ends as exit 0.
import os, signal, sys, time
sig = getattr(signal, "SIG" + (sys.argv[1] if len(sys.argv) > 1 else "TERM"))
print("pid", os.getpid(), "raising", sig.name, flush=True)
os.kill(os.getpid(), sig); time.sleep(1)
print(f"FAIL: survived {sig.name} (pid {os.getpid()})"); sys.exit(1)
