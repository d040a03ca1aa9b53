# A22: time zone and locale. No zoneinfo (or /etc/localtime dangles), so TZ=... silently means
# UTC; no UTF-8 locale, so printing non-ASCII text raises UnicodeEncodeError.
import locale, os, sys, time
bad = []
try:
    from zoneinfo import ZoneInfo; from datetime import datetime
    if datetime(2024, 7, 1, tzinfo=ZoneInfo("Asia/Tokyo")).utcoffset().seconds != 9 * 3600: bad.append("zoneinfo offset")
except Exception as e: bad.append(f"zoneinfo: {e!r}")
os.environ["TZ"] = "America/New_York"; time.tzset()
if time.localtime(1720000000).tm_hour != 5: bad.append("libc ignores TZ (silent UTC)")
if os.path.islink("/etc/localtime") and not os.path.exists("/etc/localtime"): bad.append("/etc/localtime dangles")
try: locale.setlocale(locale.LC_ALL, "C.UTF-8")
except locale.Error as e: bad.append(f"C.UTF-8: {e}")
if (sys.stdout.encoding or "").lower().replace("-", "") != "utf8": bad.append(f"stdout is {sys.stdout.encoding}")
else: print("gr\u00fc\u00df \u6f22 \U0001f600")
print("FAIL: " + "; ".join(bad) if bad else "PASS"); sys.exit(bool(bad))
