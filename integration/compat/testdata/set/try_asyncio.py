#!/usr/bin/python3
import asyncio
import sys
from asyncio.subprocess import PIPE


async def main():
    children = [await asyncio.create_subprocess_exec(sys.executable, "-c", f"print({i})", stdout=PIPE) for i in range(3)]
    print([(await child.communicate())[0] for child in children])
    shell = await asyncio.create_subprocess_shell("cat; exit 3", stdin=PIPE, stdout=PIPE)
    print((await shell.communicate(b"x"))[0], shell.returncode)
    print(await asyncio.to_thread(sum, [1, 2]))


asyncio.run(main())
