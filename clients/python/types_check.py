"""Looked at by mypy in a test, never run: what callers write has the types that they expect."""

from __future__ import annotations

import pathlib

import sandglass


def use() -> list[str]:
    with sandglass.Session(memory="128m", allow_host=["example.org:443"], max_running=2, env={"A": "b"}, warm="python=1") as box:
        result: sandglass.Result = box.run(code="print(1)", lang="python", args=("a",), files={"a": "text"}, timeout=5, cpus=None,
                                           stdin=memoryview(b"x"), on_output=lambda piece: print(piece.stream, piece.text))
        box.run(file=pathlib.Path("/x"), files={"a": b"bytes"}, artifacts_dir=pathlib.Path("/y"))
        mixed: dict[str, sandglass.Data] = {"a": "text", "b": b"bytes"}
        box.run(command=["true"], files=mixed)
        run = box.submit(command=["true"], stream=True, files=[sandglass.File("x", source="/x", executable=True)])
        texts = [piece.text for piece in run]
        try:
            alone = sandglass.run(command=["true"], artifacts_inline="1m", allow_degraded=["cpu"], flags=["--pids-limit=9"])
            texts.append(str(alone.check().warm))
        except sandglass.Refused as e:
            texts += e.hints
        box.run(command="echo hi").check()  # type: ignore[arg-type]
        box.run(code=b"1", lang="python")  # type: ignore[arg-type]
        box.run(command=["true"], env={"A": 1})  # type: ignore[dict-item]
        box.runs(command=["true"])  # type: ignore[attr-defined]
        run.result(wait=1.5).signal + 1  # type: ignore[operator]
    return texts + [result.stdout] + [a.path for a in result.artifacts if a.data]


async def tasks() -> bytes:
    async def slowly(piece: sandglass.Output) -> None:
        print(piece.text)

    async with sandglass.AsyncSession(binary="/usr/bin/sandglass", timeout="5s") as box:
        result: sandglass.Result = await box.run(command=["true"], on_output=slowly)
        await box.run(code=1, lang="sh")  # type: ignore[arg-type]
        box.submit(command=["true"]).cancel()  # type: ignore[attr-defined, misc]
        run = await box.submit(command=["true"], stream=True)
        data = b"".join([piece.data async for piece in run])
        run.cancel()
    return data + (await run.result()).stdout_bytes + result.stderr_bytes
