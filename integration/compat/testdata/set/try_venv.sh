#!/bin/bash
# A virtual environment with pip in it, which installs a package of one's own.
set -e
/usr/bin/python3 -m venv /work/env
/work/env/bin/python -c 'import sys; print(sys.prefix)'
/work/env/bin/pip --version | grep -c 'from /work/env/lib/python.*/site-packages/pip'
mkdir /work/src
cd /work/src
echo 'text = "a package of one'\''s own"' >own.py
# A wheel is an archive of the module and three lines about it.
/work/env/bin/python - <<'P'
import zipfile
with zipfile.ZipFile("own-1-py3-none-any.whl", "w") as z:
    z.write("own.py")
    z.writestr("own-1.dist-info/METADATA", "Metadata-Version: 2.1\nName: own\nVersion: 1\n")
    z.writestr("own-1.dist-info/WHEEL", "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
    z.writestr("own-1.dist-info/RECORD", "")
P
/work/env/bin/pip install -q --no-index --disable-pip-version-check ./own-1-py3-none-any.whl
cd /
/work/env/bin/python -c 'import own; print(own.text)'
