#!/bin/bash
# The page's script makes it green. $1 is an option more.
cd /work
cat >page.html <<'H'
<body style="margin: 0"><script>document.body.style.background = '#00' + (255).toString(16) + '00'</script></body>
H
chromium --headless ${1:-} --screenshot=/work/a.png --window-size=64,64 file:///work/page.html 2>log
echo "exit $?"
grep -o 'No usable sandbox' log
/usr/bin/python3 -c 'from PIL import Image; i = Image.open("/work/a.png"); print(i.size, i.convert("RGB").getpixel((32, 32)))' 2>/dev/null
