# A27: output that is not UTF-8. Output that is not UTF-8 (or holds NUL, ESC, lone surrogates)
# makes the runner itself raise, and a good run is lost or reported as an internal error.
import os
os.write(1, bytes(range(256)) + b"\xed\xa0\x80"); os.write(2, b"\xff\xfe")
