# A19: HOME and caches not writable. HOME points into the read-only root (or nowhere) and no
# temporary directory is writable, so matplotlib, fontconfig, pip, npm and numba either fail or
# rebuild their caches on every run.
import os, sys, tempfile
bad = []
home = os.environ.get("HOME", "")
for label, d in (("HOME", home), ("tempdir", tempfile.gettempdir()), ("/tmp", "/tmp"), ("cache", os.path.join(home or "/", ".cache", "case-a19"))):
    try:
        os.makedirs(d, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=d) as f: f.write(b"x")
    except Exception as e: bad.append(f"{label} {d}: {e!r}")
try:
    import matplotlib; matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    plt.plot([1, 2]); plt.savefig(os.path.join(tempfile.gettempdir(), "p.png"))
except ImportError: pass
except Exception as e: bad.append(f"matplotlib: {e!r}")
print("FAIL: " + "; ".join(bad) if bad else "PASS"); sys.exit(bool(bad))
