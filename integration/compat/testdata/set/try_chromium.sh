#!/bin/bash
# The page's script makes it green. $1 is an option more.
# Without a network Chromium's first start waits for ever now and then, bubblewrap's
# sandbox or this one around it: docs/COMPATIBILITY.md. Such a start is no answer.
cd /work
cat >page.html <<'H'
<body style="margin: 0"><script>document.body.style.background = '#00' + (255).toString(16) + '00'</script></body>
H
for _ in 1 2 3 4; do
  timeout -s KILL 20 chromium --headless ${1:-} --screenshot=/work/a.png --window-size=64,64 file:///work/page.html 2>log
  code=$?
  [ "$code" = 137 ] || break
done
echo "exit $code"
grep -o 'No usable sandbox' log
/usr/bin/python3 -c 'from PIL import Image; i = Image.open("/work/a.png"); print(i.size, i.convert("RGB").getpixel((32, 32)))' 2>/dev/null
