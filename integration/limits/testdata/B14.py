# B14: endless output. The output cap is applied after the run, so gigabytes pile up in the
# supervisor first; or the reader stops at the cap, the pipe fills, and the run ends as a time-
# out.
import os, sys
line = b"y" * 65535 + b"\n"; left = int(os.environ.get("MB", "4096")) * 16
while left: left -= 1; os.write(1 if left % 2 else 2, line)
sys.exit(5)
