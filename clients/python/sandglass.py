"""Run code that a model wrote, each time in a fresh sandbox that is thrown away.

    import sandglass

    with sandglass.Session(memory="128m", timeout="5s") as box:
        result = box.run(code="print(6 * 7)", lang="python")
        print(result.stdout, result.outcome, result.exit_code)

A Session is one ``sandglass session`` process, which many threads may use at
once; AsyncSession is the same for asyncio, and run() is for a single program.
One that is forgotten, or left open when the interpreter exits, is closed then.
Every run has a sandbox of its own. The program's own end, its timeout and its
death out of memory are results; what sandglass itself refuses or cannot do is an
exception below SandglassError.

Text that a model wrote belongs into ``code``, ``stdin``, ``files`` and ``args``.
``file``, a file's ``source``, ``artifacts_dir`` and the options name things of the
host's and are the caller's to choose: docs/SESSION.md.

Python 3.9 or newer, the standard library alone.
"""

from __future__ import annotations

import _thread
import asyncio
import atexit
import base64
import collections
import collections.abc
import dataclasses
import difflib
import json
import math
import os
import queue
import re
import shlex
import subprocess
import threading
import time
import weakref
from typing import (Any, AsyncIterator, Awaitable, Callable, Deque, Dict, Iterator, List, Mapping, Optional, Sequence,
                    Tuple, Type, Union)

__all__ = ["Artifact", "AsyncRun", "AsyncSession", "Busy", "Canceled", "Data", "Failed", "File", "Files", "NotInstalled", "Output",
           "ProtocolError", "Refused", "RequestError", "Result", "Run", "RunError", "SandglassError", "Session",
           "SessionClosed", "Words", "run"]

PROTOCOL = 1

# How much streamed output of one run may wait here until somebody takes it. Then
# the session sends no more of it, which holds up the program.
_MAX_WAITING = 8 << 20
# A session that knows no windows is not read on then. How long a run of which nothing
# is taken may hold up the replies of others: the program chooses how much it writes,
# and must not choose what else is answered.
_PATIENCE = 10.0
# Of a result that is no output: limits, layers, hosts, the names of artifacts.
_MAX_REST = 64 << 20
_MAX_STDERR = 64 << 10
_START_SECONDS = 60.0
_END_SECONDS = 30.0
# How long a session that has not said hello may take to end when it is told to.
_LEAVING_SECONDS = 5.0


class SandglassError(Exception):
    """What sandglass refused or could not do; hints are lines that can be pasted."""

    def __init__(self, message: str, hints: Sequence[str] = (), exit_code: Optional[int] = None) -> None:
        super().__init__(message)
        self.message = message
        self.hints: List[str] = list(hints)
        self.exit_code = exit_code

    def __str__(self) -> str:
        return "\n".join([self.message] + ["hint: " + h for h in self.hints])


class NotInstalled(SandglassError):
    """The binary could not be started."""


class Refused(SandglassError):
    """The request, or this host, is not good for a run: nothing was run."""


class RequestError(SandglassError, ValueError):
    """The request has no form that the session takes, or names what there is not: nothing was run."""


class Busy(SandglassError):
    """Too many runs wait: try again after one has ended."""


class ProtocolError(SandglassError):
    """What was started does not speak this version of the protocol."""


class SessionClosed(SandglassError):
    """The session has ended, and the run with it."""


class RunError(SandglassError):
    """A run that came to no good end; result says which, when there was one."""

    def __init__(self, message: str, result: Optional[Result] = None, hints: Sequence[str] = ()) -> None:
        super().__init__(message, hints, result.exit_code if result else None)
        self.result = result


class Canceled(RunError):
    """The run was cancelled; result is None when it had not been started."""


class Failed(RunError):
    """sandglass itself failed in the middle of the run."""


Data = Union[str, bytes, bytearray, memoryview]
Words = Union[List[str], Tuple[str, ...]]  # a str is a Sequence[str] too, and no words


@dataclasses.dataclass(frozen=True)
class File:
    """A file that is in /work when the program starts: data, or the host's file source."""

    path: str
    data: Optional[Data] = None
    source: Union[str, "os.PathLike[str]", None] = None
    executable: bool = False


@dataclasses.dataclass(frozen=True)
class Output:
    """A piece of a stream, "stdout" or "stderr"."""

    stream: str
    data: bytes

    @property
    def text(self) -> str:
        return self.data.decode("utf-8", "replace")


@dataclasses.dataclass(frozen=True)
class Artifact:
    """What the program left in /out. path is hostile text: do not join it to a directory of the host's."""

    path: str
    type: str
    size: int
    mode: str
    sha256: Optional[str]
    skipped: Optional[str]  # why it was not copied
    data: Optional[bytes]  # with artifacts_inline
    raw: Dict[str, Any] = dataclasses.field(repr=False)

    @property
    def text(self) -> str:
        return (self.data or b"").decode("utf-8", "replace")


@dataclasses.dataclass(frozen=True)
class Result:
    """What a run came to; raw is the whole object of docs/result.schema.json."""

    outcome: str  # exited, signaled, timeout, cpu_time, memory, output
    exit_code: int
    warm: bool  # it had a sandbox that was ready
    signal: Optional[int]
    error: Optional[str]  # what did not reach the caller
    hints: List[str]
    wall_ms: int
    setup_ms: int
    cpu_ms: int
    memory_peak_bytes: int
    pids_peak: int
    oom_kills: int
    stdout_bytes: bytes = dataclasses.field(repr=False)
    stderr_bytes: bytes = dataclasses.field(repr=False)
    stdout_truncated: bool
    stderr_truncated: bool
    artifacts: List[Artifact]
    raw: Dict[str, Any] = dataclasses.field(repr=False)

    @property
    def stdout(self) -> str:
        return self.stdout_bytes.decode("utf-8", "replace")

    @property
    def stderr(self) -> str:
        return self.stderr_bytes.decode("utf-8", "replace")

    @property
    def ok(self) -> bool:
        """Whether the program ended by itself with 0, and all that it made is here."""
        return self.outcome == "exited" and self.exit_code == 0 and not self.error

    def check(self) -> Result:
        """This result, or RunError when it is not ok."""
        if not self.ok:
            what = "the program ended as %s, exit code %d" % (self.outcome, self.exit_code)
            raise RunError(": ".join(filter(None, (what, self.error, _last_line(self.stderr)))), self, self.hints)
        return self


def _last_line(text: str) -> str:
    """Of what a program wrote, for a message: no terminal may be told anything by it."""
    lines = text.rstrip().splitlines()
    return "".join(c if c.isprintable() else "?" for c in lines[-1][:200]) if lines else ""


def _data(o: Mapping[str, Any]) -> bytes:
    """The bytes of an object with text or base64."""
    if "base64" in o:
        return base64.b64decode(o["base64"])
    text: str = o.get("text", "")
    return text.encode()


def _artifact(o: Dict[str, Any]) -> Artifact:
    why = o.get("skipped")
    kept = o["type"] == "file" and not o.get("skipped") and ("text" in o or "base64" in o or o["size"] == 0)
    return Artifact(o["path"], o["type"], o["size"], o["mode"], o.get("sha256"),
                    why and why.replace("use --force", "use force=True"), _data(o) if kept else None, o)


def _result(o: Dict[str, Any]) -> Result:
    out, err = o["stdout"], o["stderr"]
    return Result(o["outcome"], o["exit_code"], o.get("warm", False), o.get("signal"), _said(o.get("error")),
                  [_hint(h) for h in o.get("hints", ())], o["wall_ms"], o["setup_ms"], o["cpu_ms"], o["memory_peak_bytes"], o["pids_peak"], o["oom_kills"], _data(out), _data(err),
                  out["truncated"], err["truncated"], [_artifact(a) for a in o["artifacts"]], o)


def _outcome(reply: Dict[str, Any]) -> Result:
    """The result of a last reply, or the exception that it stands for."""
    if reply["type"] == "result":
        result = _result(reply["result"])
        if result.outcome == "canceled":
            raise Canceled("the run was cancelled", result)
        if result.outcome in ("failed", "refused"):
            raise Failed(result.error or result.outcome, result, result.hints)
        return result
    code, what, hints = reply["code"], str(reply["error"]), [_hint(h) for h in reply.get("hints", ())]
    if code == "canceled":
        raise Canceled(what)
    if code == "refused":
        raise _refusal(what, reply.get("hints", ()), reply.get("exit_code"))
    if code == "busy":
        raise Busy("the session is busy: " + what, [*hints, "try again when a run has ended", "Session(max_queued=1000)"])
    kinds: Dict[str, Any] = {"closing": SessionClosed, "malformed": RequestError, "too_large": RequestError}
    raise kinds.get(code, ProtocolError)(what, hints, reply.get("exit_code"))


# What a run has beside the options, and what only a session can have.
_FIELDS = ("code", "lang", "command", "file", "args", "env", "stdin", "files", "artifacts_inline", "artifacts_dir", "force", "stream",
           "on_output")
_FOR_ALL = ("allow_degraded", "allow_mount", "cgroup_parent")
_SESSION = (*_FOR_ALL, "max_running", "max_queued", "warm", "warm_age", "binary", "flags")


def _name(flag: str) -> str:
    return flag.replace("-", "_")


# Hints are lines for a shell, which stay, or are about flags. These are neither flags
# nor a whole run, which _arguments reads; the first that fits is taken.
_HINTS: Sequence[Tuple[str, Callable[[re.Match[str]], str]]] = (
    (r'"output": "stream"', lambda m: "run(on_output=...), or submit(stream=True)"),
    (r'"artifacts": {"inline": (".+")}', lambda m: "artifacts_inline=" + m[1]),
    (r'"artifacts": {"dir": (".+")}', lambda m: "artifacts_dir=" + m[1]),
    (r'"options": {"volume": (".+")}', lambda m: "volume=" + m[1]),
    (r"--out a new directory", lambda m: "artifacts_dir=...   # a new directory"),
    (r"did you mean --([a-z-]+)\?", lambda m: "did you mean %s?" % _name(m[1])),
    (r"leave --([a-z-]+)(?: none)? out(:.*|)", lambda m: "leave %s out%s" % (_name(m[1]), m[2])),
    (r"(leave --[a-z-]+ out, or )(--.+)", lambda m: "leave %s out, or %s" % (_name(m[1].split()[1][2:]), _hint(m[2]))),
    (r"(?!sandglass run )([a-z][a-z', ]*: )((?:-|sandglass run ).+)", lambda m: m[1] + _hint(m[2])),
    (r"sandglass run \S+ &", lambda m: "submit(...)"),
    (r"sandglass [a-z]+ --help", lambda m: m[0]),
    (r"echo '(.+)' \| sandglass run - --lang (\S+)", lambda m: "code=%s, lang=%s" % (_text(m[1]), _text(m[2]))),
    (r"(.+); sandglass run --cgroup-parent (\S+) script\.py", lambda m: '%s   # and then Session(cgroup_parent="%s")' % (m[1], m[2])),
    (r"((?:PATH=|setpriv |sudo |systemd-run |unshare )(?:.+ )?)sandglass run (?:--\S+ \S+ )*(?:script\.py|FILE)\b(.*)", lambda m: "%spython3 script.py%s" % (m[1], m[2])),
)
_SHORT = {"-c": "code", "-e": "env", "-i": "stdin", "-m": "memory", "-u": "user", "-v": "volume", "-w": "workdir", "--out": "artifacts_dir"}
_SWITCHES = ("stdin", "force", "pty", "explain_denials", "read_only")


def _hint(hint: str) -> str:
    """A hint of the command line's in this library's words, where it is about flags. It repeats
    arguments that a model chose: whatever they are, the refusal or the result has to arrive."""
    try:
        body, mark, note = hint.rpartition("   # ")  # inside of quotes it leaves one open, which stays as it is
        if not mark:
            body, note = hint, ""
        for pattern, to in _HINTS:
            m = re.fullmatch(pattern, body)
            if m:
                return to(m) + mark + note
        return (_arguments(body) or body) + mark + note
    except Exception:
        return hint


_WORD = re.compile(r"""(?:[^\s'"\\]|\\.|'[^']*'|"(?:[^"\\]|\\.)*")+""")


def _shell_words(line: str) -> List[str]:
    """The words of a line of shell. What our own text has and no argument, which comes in
    single quotes, begins with a NUL: an open < and a variable."""
    words = ["\0" * m[0].startswith(("<", '"$')) + shlex.split(m[0])[0] for m in _WORD.finditer(line)]
    if "\0" in line or _WORD.sub("", line).strip():
        raise ValueError("no line of shell")
    return words


def _arguments(line: str) -> str:
    """Flags, or a line that begins with sandglass run, as arguments; empty for anything else."""
    whole = line.startswith("sandglass run ")
    if not whole and not line.startswith("-") or "$'" in line:  # a word that only a shell can say
        return ""
    words = _shell_words(line)[2 if whole else 0:]
    got: Dict[str, List[str]] = {}
    while words and words[0].startswith("-") and words[0] != "--":
        flag, has, value = words.pop(0).partition("=")
        name = _SHORT.get(flag) or _name(flag[2:])
        if not flag.startswith("--") and flag not in _SHORT:
            return ""
        if not has and name not in _SWITCHES:
            if not words:
                return ""
            value = words.pop(0)
        got.setdefault(name, []).append(value)
    if words and not whole:
        return ""
    if whole:
        got.pop("allow_degraded", None)  # the session has it
        _program(words, got)
    said = ", ".join("%s=%s" % (name, _value(name, values)) for name, values in got.items())
    if any(name in _FOR_ALL for name in got):
        return "Session(%s), or sandglass.run(..., %s)" % (said, said)
    return "Session(%s)" % said if any(name in _SESSION for name in got) else said


def _program(words: List[str], got: Dict[str, List[str]]) -> None:
    """What follows the flags of a run: a command, a file, or an image with a command."""
    for n, word in enumerate(words):
        if word.startswith("\0<"):
            got["stdin"] = [word[2:] or words[n + 1]]
            del words[n:]
            break
    if words and words[0] == "--":
        got["command"] = words[1:]
    elif words and (any(k in got for k in ("lang", "venv", "image")) or words[0] == "FILE" or words[0].startswith("/") or words[0].endswith(".py")):
        got["file"] = words[:1]
        if words[1:]:
            got["args"] = words[1:]
    elif words:
        got["image"] = words[:1]
        if words[1:]:
            got["command"] = words[1:]


def _value(name: str, values: List[str]) -> str:
    """One argument's value as Python has it."""
    if name == "stdin":
        return "open(%s, \"rb\").read()" % _text(values[0]) if values[0] else "data"
    if name in _SWITCHES:
        return "True"
    if name == "env":
        pairs = [v.partition("=") for v in values]
        return "{%s}" % ", ".join("%s: %s" % (_text(k), _text(v) if has else "os.environ[%s]" % _text(k)) for k, has, v in pairs)
    if name in ("command", "args") or len(values) > 1:
        return "[%s]" % ", ".join(map(_text, values))
    return _text(values[0])


def _text(word: str) -> str:
    """A word of a shell's, in which hints have these two of its variables."""
    if word == "\0$(id -u)":
        return "os.getuid()"
    if word.startswith("\0$PWD"):
        return " + ".join(["os.getcwd()"] + ([_text(word[5:])] if word[5:] else []))
    return json.dumps(word, ensure_ascii=False)


# What a refusal and the error of a result say about flags. Names of the caller's and the
# program's are in it too, so that these alone are touched.
_SAID = (
    (r"^artifacts: inline: ", lambda m: "artifacts_inline: "),
    (r"^--out(?=:| (?!is ))", lambda m: "artifacts_dir"),
    (r"^--([a-z][a-z-]*)(?=: | is refused: | takes | means )", lambda m: _name(m[1])),
    (r"(?<= means nothing without )--([a-z-]+)$", lambda m: _name(m[1])),
    (r"(?<=: )--(workdir) is there$", lambda m: m[1] + " is there"),
    (r"(?<= is refused: )it is the field artifacts of a request$", lambda m: "it is artifacts_dir or artifacts_inline of a run"),
    (r"(?<= is refused: it is the )field ([a-z]+) of a request$", lambda m: "argument %s of a run" % m[1]),
)


def _said(text: Any) -> Any:
    for pattern, to in _SAID:
        text = re.sub(pattern, to, text) if text else text
    return text


def _unknown(name: str, hints: Sequence[str] = (), exit_code: Optional[int] = None) -> RequestError:
    near = difflib.get_close_matches(name, _FIELDS, 1)
    if near and not any(h.startswith("did you mean") for h in hints):
        hints = ["did you mean %s?" % near[0], *hints]
    return RequestError("unknown argument %s" % name, hints, exit_code)


def _refusal(what: str, hints: Sequence[str], exit_code: Optional[int]) -> SandglassError:
    hints = [_hint(h) for h in hints]
    m = re.match(r'unknown flag "--([^"]*)"$', what)
    if m:
        return _unknown(_name(m[1]), hints, exit_code)
    return Refused(_said(what), hints, exit_code)


_Kinds = Union[Type[Any], Tuple[Type[Any], ...]]


def _need(name: str, value: Any, kinds: _Kinds, wanted: str) -> None:
    if value is not None and not isinstance(value, kinds):
        raise RequestError("%s is of type %s, and must be %s" % (name, type(value).__name__, wanted))
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError as e:
            raise RequestError("%s has half of a surrogate pair, and UTF-8 cannot say that: %s" % (name, ascii(e.object[e.start:e.end]))) from None


def _path(name: str, value: Any) -> str:
    """A path of the host's. An empty one would be made the caller's directory, and Path('') is Path('.')."""
    _need(name, value, _PATH, "a path")
    path: str = os.fspath(value)
    _need(name, path, str, "a path of type str")
    if not path:
        raise RequestError("%s is empty, and must be a path" % name)
    if path == "." and not isinstance(value, str):
        raise RequestError("%s is Path('.'), which an empty Path is too" % name, ["%s=os.getcwd()   # if it is this directory" % name])
    return path


def _words(name: str, value: Any) -> None:
    _need(name, value, (list, tuple), "a list of str")
    for n, word in enumerate(value or ()):
        _need("%s[%d]" % (name, n), word, str, "str")
        if word is None:
            raise RequestError("%s[%d] is None, and must be str" % (name, n))


def _texts(name: str, value: Any, kinds: _Kinds, wanted: str) -> None:
    """A mapping of str to kinds."""
    _need(name, value, collections.abc.Mapping, "a mapping of str to " + wanted)
    for k, v in (value or {}).items():
        _need("a name in " + name, k, str, "str")
        if k is None or v is None:
            raise RequestError("%s[%r] is None, and must be %s" % (name, k, wanted))
        _need("%s[%r]" % (name, k), v, kinds, wanted)


_BYTES = (str, bytes, bytearray, memoryview)
_PATH = (str, os.PathLike)


def _option(name: str, value: Any) -> Any:
    if isinstance(value, os.PathLike):
        return _path(name, value)
    if isinstance(value, (list, tuple)):
        return [_option(name, v) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        raise RequestError("option %s: %s is no number that a limit can have" % (name, value))
    _need("option " + name, value, (str, int, float), "a string, number, bool or list of these")
    if value is not None:
        return value
    raise RequestError("option %s: %r is no string, number, bool or list of these" % (name, value))


def _flags(defaults: Mapping[str, Any]) -> List[str]:
    """Keyword arguments as flags: allow_host=["a", "b"] is --allow-host=a --allow-host=b."""
    flags = []
    for name, value in defaults.items():
        if value is None:
            continue
        flag = "--" + name.replace("_", "-")
        value = _option(name, value)
        for v in value if isinstance(value, list) else [value]:
            flags.append("%s=%s" % (flag, str(v).lower() if isinstance(v, bool) else v))
    return flags


def _binary_or_text(o: Dict[str, Any], text: str, binary: str, data: Data) -> None:
    if isinstance(data, str):
        o[text] = data
    else:
        o[binary] = base64.b64encode(data).decode()


def _file(f: File) -> Dict[str, Any]:
    o: Dict[str, Any] = {"path": f.path}
    _need("path of a File", f.path, str, "str")
    _need("files[%r].data" % f.path, f.data, _BYTES, "str or bytes")
    if (f.data is None) == (f.source is None):
        raise RequestError("file %r has one of data and source" % f.path)
    if f.data is not None:
        _binary_or_text(o, "text", "base64", f.data)
    else:
        o["from"] = os.path.abspath(_path("files[%r].source" % f.path, f.source))
    _need("files[%r].executable" % f.path, f.executable, bool, "True or False")
    if f.executable:
        o["executable"] = True
    return o


Files = Union[Mapping[str, Data], List[File], Tuple[File, ...]]


def _check(given: Mapping[str, Any]) -> None:
    """Each field's type, by its name; json would say what it met, and not where."""
    fields: Sequence[Tuple[str, _Kinds, str]] = (
        ("code", str, "str"), ("lang", str, "str"), ("file", _PATH, "a path"), ("stdin", _BYTES, "str or bytes"),
        ("artifacts_inline", (str, int), "a size"), ("artifacts_dir", _PATH, "a path"), ("force", bool, "True or False"))
    for name, kinds, wanted in fields:
        _need(name, given[name], kinds, wanted)
    _words("command", given["command"])
    _words("args", given["args"])
    _texts("env", given["env"], str, "str")
    files = given["files"]
    if isinstance(files, collections.abc.Mapping):
        _texts("files", files, _BYTES, "str or bytes")
    else:
        _need("files", files, (list, tuple), "a mapping of str to str or bytes, or a list of File")
        for n, f in enumerate(files or ()):
            if not isinstance(f, File):
                raise RequestError("files[%d] is of type %s, and must be File" % (n, type(f).__name__))
    if given["force"] and given["artifacts_dir"] is None:
        raise RequestError("force is for artifacts_dir: what is there is replaced")
    names = {_name(k): v for k, v in given["options"].items() if v is not None}
    for name, where in (("stream", "submit(), and on_output for run()"), ("on_output", "run(), and stream=True for submit()")):
        if name in names:
            raise RequestError("%s is for %s" % (name, where))
    for name in names:
        if name in _SESSION:
            raise RequestError("%s is for the whole session, and not for one run of it" % name, ["Session(%s=...)" % name])
    if sum(given[k] is not None for k in ("code", "command", "file")) != 1:
        for name in names:
            if difflib.get_close_matches(name, ("code", "command", "file"), 1):
                raise _unknown(name)
        raise RequestError("a run has one of code (with lang), command and file")


def _request(*, code: Optional[str] = None, lang: Optional[str] = None, command: Optional[Words] = None,
             file: Union[str, "os.PathLike[str]", None] = None, args: Words = (), env: Optional[Mapping[str, str]] = None,
             stdin: Optional[Data] = None, files: Files = (), artifacts_inline: Union[str, int, None] = None,
             artifacts_dir: Union[str, "os.PathLike[str]", None] = None, force: bool = False, **options: Any) -> Dict[str, Any]:
    if isinstance(command, (str, bytes)):
        raise RequestError("command is a list of words; for a line of shell: command=[\"sh\", \"-c\", line]")
    _check(locals())
    o: Dict[str, Any] = {}
    for name, value in (("code", code), ("lang", lang), ("env", dict(env) if env else None),
                        ("command", list(command) if command is not None else None), ("args", list(args or ()) or None),
                        ("file", os.path.abspath(_path("file", file)) if file is not None else None)):
        if value is not None:
            o[name] = value
    if stdin is not None:
        _binary_or_text(o, "stdin", "stdin_base64", stdin)
    listed = [File(k, v) for k, v in files.items()] if isinstance(files, collections.abc.Mapping) else list(files or ())
    if listed:
        o["files"] = [_file(f) for f in listed]
    if artifacts_inline is not None and artifacts_dir is not None:
        raise RequestError("artifacts_inline and artifacts_dir exclude each other")
    if artifacts_inline is not None:
        o["artifacts"] = {"inline": artifacts_inline}
    elif artifacts_dir is not None:
        o["artifacts"] = {"dir": os.path.abspath(_path("artifacts_dir", artifacts_dir)), "force": bool(force)}
    wanted = {k.replace("_", "-"): _option(k, v) for k, v in options.items() if v is not None}
    if wanted:
        o["options"] = wanted
    return o


def _streamed(on_output: Any) -> bool:
    if on_output is not None and not callable(on_output):
        raise RequestError("on_output is of type %s, and must be a function" % type(on_output).__name__)
    return on_output is not None


class _Lines:
    """Lines of bounded length out of blocks of any size."""

    def __init__(self) -> None:
        self.most = 1 << 20
        self._held = bytearray()
        self._seen = 0  # so much of it has no newline

    def feed(self, block: bytes) -> Iterator[bytes]:
        self._held += block
        while True:
            at = self._held.find(b"\n", self._seen)
            if at < 0:
                self._seen = len(self._held)
                if self._seen > self.most:
                    raise ProtocolError("a reply is longer than %d bytes" % self.most)
                return
            line = bytes(self._held[:at])
            del self._held[:at + 1]
            self._seen = 0
            yield line

    @property
    def rest(self) -> int:
        return len(self._held)


class _Window:
    """What was taken of a run's output, and is not yet told to the session: it sends no
    more than has room here. Room is given back some at a time, since a line for each
    piece would cost more than the piece."""

    def __init__(self, core: _Core, id: str) -> None:
        limits = core.hello["limits"]
        self.size = min(int(limits["window_bytes"]), _MAX_WAITING)
        self._most = int(limits["window_pieces"])
        self._core, self._id = core, id
        self._pieces = self._bytes = 0

    def taken(self, pieces: int, length: int) -> None:
        """By who has the run's lock, or by the reader of one that is forgotten."""
        self._pieces += pieces
        self._bytes += length
        if self._pieces * 4 >= self._most or self._bytes * 4 >= self.size:
            self._core.more(self._id, self._pieces)
            self._pieces = self._bytes = 0


class Run:
    """One run of a Session. Iterating it gives its output as it comes, if it was submitted
    with stream=True; leaving that loop before the end cancels the run."""

    def __init__(self, core: _Core, id: str, stream: bool) -> None:
        self.id = id
        self._core = core
        self._stream = stream
        self._window = _Window(core, id) if stream and "window" in core.hello["features"] else None
        self._changed = threading.Condition()
        self._pieces: Deque[Output] = collections.deque()
        self._waiting = 0
        self._dropping = False
        self._full: Optional[float] = None  # since when nothing was taken
        self._given_up = False
        self._reply: Optional[Dict[str, Any]] = None
        self._failure: Optional[SandglassError] = None
        self._wake: Optional[Callable[[], None]] = None
        self._session: Union[Session, AsyncSession, None] = None  # which is not closed as forgotten while somebody has a run of it

    def __del__(self) -> None:
        with self._changed:
            self._changed.notify_all()  # a reader that waits for room goes on
        # The program goes on, and nobody will take these. The window is the reader's now.
        if self._window is not None and self._pieces:
            self._core.more(self.id, len(self._pieces))

    @property
    def done(self) -> bool:
        return self._reply is not None or self._failure is not None

    def cancel(self) -> None:
        """End the run; result() then raises Canceled, unless the program was quicker. What it writes from now on is dropped."""
        with self._changed:
            self._dropping = True
            self._changed.notify_all()
        if not self.done:
            self._core.cancel(self.id)

    def result(self, wait: Optional[float] = None) -> Result:
        """The result, when the run has ended; output that nobody took is dropped. TimeoutError after wait seconds."""
        self._drop()
        with self._changed:
            if not self._changed.wait_for(lambda: self.done, wait):
                raise TimeoutError("the run has not ended after %s s" % wait)
        return self._get()

    def __iter__(self) -> Iterator[Output]:
        self._streams()
        return self._iterate()

    def _iterate(self) -> Iterator[Output]:
        whole = False
        try:
            while True:
                with self._changed:
                    self._changed.wait_for(lambda: self._pieces or self._over)
                    piece = self._take()
                if piece is None:
                    whole = True
                    return
                yield piece
        finally:
            if not whole:
                self._abandon()

    def _streams(self) -> None:
        if not self._stream:
            raise RequestError("the run was not submitted with stream=True: its output is in its result")

    @property
    def _over(self) -> bool:
        return self.done or self._given_up

    def _take(self) -> Optional[Output]:
        if not self._pieces:
            if self._given_up:
                raise self._canceled(None)  # and no end that looks like the program's
            return None
        piece = self._pieces.popleft()
        self._waiting -= len(piece.data)
        self._full = None
        self._taken(1, len(piece.data))
        self._changed.notify_all()
        return piece

    def _taken(self, pieces: int, length: int) -> None:
        if self._window is not None:
            self._window.taken(pieces, length)

    def _canceled(self, result: Optional[Result]) -> Canceled:
        return Canceled("nobody took the run's output for %g s, and other runs waited for it: it was cancelled" % _PATIENCE, result,
                        ["take it in a thread or task of its own, or do without stream=True and on_output"])

    def _get(self) -> Result:
        if self._reply is None:
            # Each waiter has its own: a traceback is added to what is raised.
            f = self._failure or SessionClosed("the run has not ended")
            raise type(f)(f.message, f.hints, f.exit_code)
        try:
            return _outcome(self._reply)
        except Canceled as e:
            raise (self._canceled(e.result) if self._given_up else e) from None

    def _drop(self) -> None:
        with self._changed:
            self._dropping = True
            self._taken(len(self._pieces), self._waiting)
            self._pieces.clear()
            self._waiting = 0
            self._changed.notify_all()

    def _abandon(self) -> None:
        """Nobody waits any more."""
        self._drop()
        self.cancel()

    def _put(self, piece: Output, others: bool) -> bool:
        """By the reader, which has the lock: false while there is no room."""
        if self._window is None and self._waiting >= _MAX_WAITING and not self._dropping:  # a window bounds what comes
            now = time.monotonic()
            self._full = self._full or now
            if not others or now - self._full < _PATIENCE:
                return False
            self._given_up = self._dropping = True
            self._core.cancel(self.id)
        if self._dropping:
            self._taken(1, len(piece.data))
        else:
            self._pieces.append(piece)
            self._waiting += len(piece.data)
        self._notify()
        return True

    def _end(self, reply: Optional[Dict[str, Any]], failure: Optional[SandglassError] = None) -> None:
        with self._changed:
            self._reply, self._failure = reply, failure
            self._notify()

    def _notify(self) -> None:
        self._changed.notify_all()
        if self._wake:
            self._wake()


class _Start:
    """The start of a session, which another thread may give up."""

    def __init__(self) -> None:
        self.over = threading.Event()
        self.given_up = False
        self.waiting = 0  # calls of AsyncSession.start()

    def give_up(self) -> None:
        self.given_up = True
        self.over.set()


class _Core:
    """A session's process, and the three threads that keep its pipes moving. It
    knows nothing of who waits, so that a Session that is forgotten can be ended."""

    def __init__(self, binary: str, flags: Sequence[str], start: Optional[_Start] = None) -> None:
        start = start or _Start()
        self.hello: Dict[str, Any] = {}
        self._lock = threading.RLock()
        # Weak: what is written by a run that the caller has forgotten is dropped.
        self._runs: Dict[str, Tuple[weakref.ref[Run], Optional[_Window]]] = {}
        self._next = 0
        self._dead: Optional[SandglassError] = None
        self._closing = False
        self._greeted = start.over
        self._requests: queue.SimpleQueue[Optional[bytes]] = queue.SimpleQueue()
        self._stderr = b""
        self._pid = os.getpid()
        self._threads = [threading.Thread(target=f, name="sandglass " + n, daemon=True)
                         for n, f in (("stderr", self._listen), ("requests", self._write), ("replies", self._read))]
        try:
            # A session of its own: Ctrl-C is for the caller, who cancels what it
            # wants to. It ends with its pipes, whatever becomes of the caller.
            self._process = subprocess.Popen([binary, "session", *flags], bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                             stderr=subprocess.PIPE, close_fds=True, start_new_session=True)
        except OSError as e:
            raise NotInstalled("%s: %s" % (binary, e.strerror or e), ['Session(binary="/usr/local/bin/sandglass")']) from None
        _cores.add(self)  # whole: another thread's exit may come from here on
        try:
            for t in self._threads:
                t.start()
            self._greeted.wait(_START_SECONDS)
            if start.given_up:
                self._die(SessionClosed("the start of the session was given up"))
            elif not self.hello:
                self._die(ProtocolError("%s session says no hello" % binary))
            if self._dead is not None:
                raise self._dead
        except BaseException:
            self._abandon()
            raise

    def _abandon(self) -> None:
        """The end of a session that nobody has. It may be making the sandboxes that it
        keeps ready: SIGKILL would leave their control groups to the next start."""
        self._closing = True
        self._requests.put(None)
        try:
            if self._process.poll() is None:
                self._process.terminate()
            self._process.wait(_LEAVING_SECONDS)
        except subprocess.TimeoutExpired:
            pass
        finally:
            self.kill()

    # The reader.

    def _read(self) -> None:
        lines = _Lines()
        failure: Optional[SandglassError] = None
        assert self._process.stdout is not None
        try:
            while True:
                block = self._process.stdout.read(1 << 16)
                if not block:
                    break
                for line in lines.feed(block):
                    self._take(json.loads(line), lines)
        except SandglassError as e:
            failure = e
        except Exception as e:  # whatever it is, nobody may wait for ever
            failure = ProtocolError("a reply that cannot be read: %s: %s" % (type(e).__name__, e))
        if failure is not None:
            self._signal_kill()
            self._process.stdout.close()  # whoever else has the other end
        self._ended(failure, lines.rest > 0)

    def _take(self, reply: Dict[str, Any], lines: _Lines) -> None:
        kind = reply["type"]
        if not self.hello:
            if kind != "hello" or reply["protocol"] != PROTOCOL:
                raise ProtocolError("the session speaks protocol %r, and this library %d" % (reply.get("protocol"), PROTOCOL),
                                    ["pip install --upgrade sandglass"])
            limits = reply["limits"]
            # A byte of output is six at most: \u0000.
            lines.most = 6 * (2 * int(limits["collect_bytes"]) + int(limits["inline_bytes"])) + _MAX_REST
            self.hello = reply
            self._greeted.set()
            return
        if kind == "error" and reply.get("to") in ("cancel", "more"):
            return  # the run was quicker
        if kind in ("result", "error"):
            if "id" not in reply:
                raise ProtocolError("an error that is about no run: %s" % reply["error"])
            with self._lock:
                known = self._runs.pop(reply["id"], None)
            run = known and known[0]()
            if run is not None:
                run._end(reply)
        elif kind == "output":
            with self._lock:
                known = self._runs.get(reply["id"])
            if known is not None:
                self._give(*known, Output(reply["stream"], _data(reply)))

    def _give(self, ref: weakref.ref[Run], window: Optional[_Window], piece: Output) -> None:
        """Waits for room, without being one that remembers the run."""
        run = ref()
        while run is not None:
            changed = run._changed
            with changed:
                if run._put(piece, len(self._runs) > 1):
                    return
                del run
                if ref() is not None:
                    changed.wait(0.25)  # others may have come meanwhile
            run = ref()
        if window is not None:
            window.taken(1, len(piece.data))

    def _ended(self, failure: Optional[SandglassError], cut: bool) -> None:
        """The last reply has been read: everybody who waits is told."""
        try:
            code: Optional[int] = self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._signal_kill()
            code = self._process.wait()
        self._threads[0].join(5.0)
        if failure is None:
            failure = self._why(code, cut)
        self._die(failure)
        self._requests.put(None)

    def _why(self, code: Optional[int], cut: bool) -> SandglassError:
        said = self._stderr.decode("utf-8", "replace").splitlines()
        errors = [l[len("sandglass: error: "):] for l in said if l.startswith("sandglass: error: ")]
        hints = [l[len("hint: "):] for l in said if l.startswith("hint: ")]
        if errors and not self.hello:
            return _refusal(errors[0], hints, code)
        if self._closing and code == 0:
            return SessionClosed("the session is closed")
        what = "the session ended with %s%s" % (code if code is None or code >= 0 else "signal %d" % -code, ", in the middle of a reply" if cut else "")
        if not self.hello:
            return ProtocolError("no session was started: " + "; ".join([what] + said[-3:]))
        return SessionClosed(": ".join([what] + (errors or said[-3:])), [_hint(h) for h in hints], code)

    def _alive(self) -> List[Run]:
        return [run for run in (ref() for ref, _ in self._runs.values()) if run is not None]

    def _die(self, failure: SandglassError) -> None:
        with self._lock:
            if self._dead is None:
                self._dead = failure
            left, self._runs = self._alive(), {}
        for run in left:
            run._end(None, failure)
        self._greeted.set()

    # The writer. It alone writes, so that no signal of the caller's cuts a line.

    def _write(self) -> None:
        assert self._process.stdin is not None
        try:
            while True:
                line = self._requests.get()
                if line is None:
                    break
                rest = memoryview(line)
                while rest:
                    rest = rest[self._process.stdin.write(rest) or 0:]
        except (OSError, ValueError):
            pass  # it has ended, as the reader sees
        try:
            self._process.stdin.close()
        except OSError:
            pass

    def _listen(self) -> None:
        assert self._process.stderr is not None
        try:
            while True:
                block = self._process.stderr.read(1 << 12)
                if not block:
                    return
                self._stderr = (self._stderr + block)[-_MAX_STDERR:]
        except (OSError, ValueError):
            pass

    # For the caller.

    def submit(self, request: Dict[str, Any], stream: bool) -> Run:
        with self._lock:
            self._next += 1
            run = Run(self, str(self._next), stream)
        try:
            line = json.dumps({"type": "run", "id": run.id, **request, "output": "stream" if stream else "collect",
                               **({"window": run._window.size} if run._window else {})}, allow_nan=False).encode()
        except (TypeError, ValueError) as e:
            raise RequestError("the request is not JSON: %s" % e) from None
        if len(line) > self.hello["limits"]["line_bytes"]:
            # The session could not say whose it was.
            raise RequestError("the request has %d bytes, and may have %d" % (len(line), self.hello["limits"]["line_bytes"]),
                               ["File(path, source=...)", "volume=..."])
        with self._lock:
            if self._dead is not None:
                raise SessionClosed(self._dead.message, self._dead.hints)
            if self._closing:
                raise SessionClosed("the session is closed")
            self._runs[run.id] = weakref.ref(run), run._window
            self._requests.put(line + b"\n")
        return run

    def cancel(self, id: str) -> None:
        with self._lock:
            if id in self._runs:
                self._requests.put(b'{"type":"cancel","id":"%s"}\n' % id.encode())

    def more(self, id: str, pieces: int) -> None:
        """Without a lock: the end of a run that is forgotten comes anywhere."""
        if id in self._runs:
            self._requests.put(b'{"type":"more","id":"%s","pieces":%d}\n' % (id.encode(), pieces))

    def leave(self) -> None:
        """Cancels what runs, and has the session see the end of its requests."""
        if os.getpid() != self._pid:
            return
        with self._lock:
            first, self._closing = not self._closing, True
            left, ids = self._alive(), list(self._runs)
        if first:
            for run in left:
                run._drop()
            for id in ids:
                self.cancel(id)
            self._requests.put(None)

    def close(self, deadline: Optional[float] = None) -> None:
        if os.getpid() != self._pid:
            return
        if deadline is None:
            deadline = time.monotonic() + _END_SECONDS
        try:
            self.leave()
            for t in self._threads:
                if t.ident not in (None, threading.get_ident()):
                    t.join(max(0.0, deadline - time.monotonic()))
        finally:
            self.kill()

    def forget(self) -> None:
        """close(), of a session that nobody has any more. Garbage is collected anywhere and
        with any lock held, so nothing is waited for here; threading.Thread has locks too."""
        if os.getpid() != self._pid:
            return
        try:
            _thread.start_new_thread(self.close, ())
        except RuntimeError:  # there is no thread to be had
            self._signal_kill()

    def kill(self) -> None:
        """The end without a farewell. The sandboxes end with the process; their control groups the next start removes."""
        if os.getpid() != self._pid:
            return
        self._closing = True
        self._signal_kill()
        with self._lock:
            left = self._alive()
        for run in left:
            run._drop()  # a reader that waits for room goes on
        self._requests.put(None)
        self._process.wait()
        for t in self._threads:
            if t is not threading.current_thread() and t.ident is not None:
                t.join(5.0)
        if self._threads[-1].is_alive():
            return
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            if pipe is not None:
                try:
                    pipe.close()
                except OSError:
                    pass

    def _signal_kill(self) -> None:
        if self._process.poll() is None:
            self._process.kill()

    def _after_fork(self) -> None:
        """In a child of the caller's: the pipes are not its own. Held open here they
        would keep the session from seeing its end."""
        self._lock = threading.RLock()
        self._dead = SessionClosed("the session belongs to the process that this one was forked from")
        for run in self._alive():  # nobody is here who would end them
            run._changed = threading.Condition()
            run._failure = self._dead
        self._runs = {}
        self._process.returncode = 0  # not this process's child
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            if pipe is not None:
                try:
                    pipe.close()
                except OSError:
                    pass


_cores: weakref.WeakSet[_Core] = weakref.WeakSet()


def _at_exit() -> None:
    """No thread can be started any more, and those that there are stop behind this. What
    goes wrong with one session is no reason to leave the others open."""
    left, deadline = list(_cores), time.monotonic() + _END_SECONDS
    failure: Optional[BaseException] = None
    ends: Sequence[Callable[[_Core], None]] = (lambda core: core.leave(), lambda core: core.close(deadline))
    for end in ends:
        for core in left:
            try:
                end(core)
            except BaseException as e:
                failure = e
                if not isinstance(e, Exception):  # Ctrl-C: no more waiting
                    deadline = time.monotonic()
    if failure is not None:
        raise failure


atexit.register(_at_exit)


def _after_fork() -> None:
    for core in list(_cores):
        core._after_fork()


os.register_at_fork(after_in_child=_after_fork)


def _start(binary: Union[str, "os.PathLike[str]", None], flags: Words, max_running: Optional[int], max_queued: Optional[int],
           env: Optional[Mapping[str, str]], defaults: Mapping[str, Any], start: Optional[_Start] = None) -> _Core:
    _words("flags", flags)
    _texts("env", env, str, "str")
    more = dict(defaults)
    if env:
        more["env"] = ["%s=%s" % kv for kv in env.items()]
    if max_running is not None:
        more["max_running"] = max_running
    if max_queued is not None:
        more["max_queued"] = max_queued
    path = _path("binary", binary) if binary is not None else os.environ.get("SANDGLASS") or "sandglass"
    arguments = [path, *(flags or ()), *_flags(more)]
    for a in arguments:
        if "\0" in a:  # execve(2) would end the argument there
            raise RequestError("an argument of sandglass session has a NUL character: %s" % ascii(a))
    return _Core(path, arguments[1:], start)


class Session:
    """One ``sandglass session``; any number of threads may run programs in it.

    Keyword arguments are the flags of ``sandglass run``, and defaults for every
    run: memory="128m", timeout="5s", allow_host=["example.org:443"]. flags are
    such flags as they stand; env is for the programs. None is the default. binary is otherwise the
    environment variable SANDGLASS, or sandglass on PATH.
    """

    def __init__(self, *, binary: Union[str, "os.PathLike[str]", None] = None, flags: Words = (), max_running: Optional[int] = None,
                 max_queued: Optional[int] = None, env: Optional[Mapping[str, str]] = None, **defaults: Any) -> None:
        self._core = _start(binary, flags, max_running, max_queued, env, defaults)
        weakref.finalize(self, self._core.forget).atexit = False  # _at_exit

    @property
    def version(self) -> str:
        return str(self._core.hello["version"])

    @property
    def languages(self) -> List[str]:
        return list(self._core.hello["languages"])

    def submit(self, *, stream: bool = False, **request: Any) -> Run:
        """Start a run, with the arguments of run(), and do not wait for it. Of a
        streamed one 8 MiB wait until they are taken; past that the program is held
        up, and nobody else. A session without the feature window holds up others too:
        when nothing is taken for 10 s, the run is cancelled there: Canceled."""
        _need("stream", stream, bool, "True or False")
        run = self._core.submit(_request(**request), stream)
        run._session = self
        return run

    def run(self, *, code: Optional[str] = None, lang: Optional[str] = None, command: Optional[Words] = None,
            file: Union[str, "os.PathLike[str]", None] = None, args: Words = (), env: Optional[Mapping[str, str]] = None,
            stdin: Optional[Data] = None, files: Files = (), artifacts_inline: Union[str, int, None] = None,
            artifacts_dir: Union[str, "os.PathLike[str]", None] = None, force: bool = False,
            on_output: Optional[Callable[[Output], Any]] = None, **options: Any) -> Result:
        """Run one program in a fresh sandbox and wait for its end.

        There is one of code (with lang), command (a list of words) and file (a
        script of the host's). files are in /work: {"in.txt": "text"} or a list of
        File. artifacts_inline="1m" brings what is left in /out with the result,
        artifacts_dir copies it there. on_output gets each Output as it comes, in
        this thread, and the result has none then. Options are those of
        ``sandglass run``: timeout=5, memory="512m", allow_host=["example.org"]; None
        is the session's default.

        An exception here, KeyboardInterrupt too, cancels the run.
        """
        run = self._core.submit(_request(code=code, lang=lang, command=command, file=file, args=args, env=env, stdin=stdin, files=files,
                                         artifacts_inline=artifacts_inline, artifacts_dir=artifacts_dir, force=force, **options),
                                _streamed(on_output))
        try:
            if on_output is not None:
                for piece in run:
                    on_output(piece)
            return run.result()
        except BaseException:
            run._abandon()
            raise

    def close(self) -> None:
        """Cancel what runs, and wait until the session and all of its sandboxes are gone."""
        self._core.close()

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


class AsyncRun:
    """One run of an AsyncSession: await result(), or iterate its output first; leaving that loop before the end cancels the run."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._loop = asyncio.get_running_loop()
        self._event = asyncio.Event()
        loop, event = self._loop, self._event

        def wake() -> None:  # without self, so that a run that is forgotten is gone
            try:
                loop.call_soon_threadsafe(event.set)
            except RuntimeError:
                pass  # the loop is closed, nobody waits

        with run._changed:
            run._wake = wake
        self._event.set()  # what came before is looked for

    @property
    def id(self) -> str:
        return self._run.id

    def cancel(self) -> None:
        """End the run; result() then raises Canceled, unless the program was quicker. What it writes from now on is dropped."""
        self._run.cancel()

    def __aiter__(self) -> AsyncIterator[Output]:
        self._run._streams()
        return self._iterate()

    async def _iterate(self) -> AsyncIterator[Output]:
        whole = False
        try:
            while True:
                self._event.clear()
                with self._run._changed:
                    piece, done = self._run._take(), self._run.done
                if piece is not None:
                    yield piece
                elif done:
                    whole = True
                    return
                else:
                    await self._event.wait()
        finally:
            if not whole:
                self._run._abandon()

    async def result(self) -> Result:
        """The result, when the run has ended. A task that is cancelled here cancels the run."""
        self._run._drop()
        try:
            while not self._run.done:
                self._event.clear()
                if not self._run.done:
                    await self._event.wait()
        except BaseException:
            self._run._abandon()
            raise
        return self._run._get()


def _leave_started(starting: asyncio.Future[_Core]) -> None:
    if not starting.cancelled() and starting.exception() is None:
        starting.result().forget()


class AsyncSession:
    """Session for asyncio: ``async with AsyncSession() as box: await box.run(...)``."""

    def __init__(self, *, binary: Union[str, "os.PathLike[str]", None] = None, flags: Words = (), max_running: Optional[int] = None,
                 max_queued: Optional[int] = None, env: Optional[Mapping[str, str]] = None, **defaults: Any) -> None:
        self._how = (binary, flags, max_running, max_queued, env, defaults)
        self._core: Optional[_Core] = None
        self._starting: Optional[Tuple[_Start, asyncio.Future[_Core]]] = None

    async def start(self) -> AsyncSession:
        if self._core is not None:  # by start(), and async with behind it
            return self
        if self._starting is None:
            begun = _Start()
            self._starting = begun, asyncio.ensure_future(asyncio.to_thread(_start, *self._how, begun))
        start, starting = self._starting
        start.waiting += 1
        try:
            core = await asyncio.shield(starting)
        except asyncio.CancelledError:
            # When the last is cancelled, no process that nobody knows may be left.
            if start.waiting == 1 and self._core is None:
                self._starting = None
                start.give_up()
                starting.add_done_callback(_leave_started)
            raise
        except BaseException:
            if self._starting == (start, starting):
                self._starting = None  # another call may try again
            raise
        finally:
            start.waiting -= 1
        if self._core is None:
            self._core, self._starting = core, None
            weakref.finalize(self, core.forget).atexit = False  # _at_exit
        return self

    async def __aenter__(self) -> AsyncSession:
        return await self.start()

    async def __aexit__(self, *_: Any) -> None:
        await self.close()

    def _started(self) -> _Core:
        if self._core is None:
            raise SessionClosed("the session is not started", ["async with AsyncSession() as box:"])
        return self._core

    @property
    def version(self) -> str:
        return str(self._started().hello["version"])

    @property
    def languages(self) -> List[str]:
        return list(self._started().hello["languages"])

    async def submit(self, *, stream: bool = False, **request: Any) -> AsyncRun:
        """Start a run, with the arguments of run(), and do not wait for it."""
        _need("stream", stream, bool, "True or False")
        run = self._started().submit(_request(**request), stream)
        run._session = self
        return AsyncRun(run)

    async def run(self, *, code: Optional[str] = None, lang: Optional[str] = None, command: Optional[Words] = None,
                  file: Union[str, "os.PathLike[str]", None] = None, args: Words = (), env: Optional[Mapping[str, str]] = None,
                  stdin: Optional[Data] = None, files: Files = (), artifacts_inline: Union[str, int, None] = None,
                  artifacts_dir: Union[str, "os.PathLike[str]", None] = None, force: bool = False,
                  on_output: Optional[Callable[[Output], Union[None, Awaitable[None]]]] = None, **options: Any) -> Result:
        """Run one program, as Session.run does; on_output may be a coroutine function. A task that is cancelled cancels the run."""
        request = _request(code=code, lang=lang, command=command, file=file, args=args, env=env, stdin=stdin, files=files,
                           artifacts_inline=artifacts_inline, artifacts_dir=artifacts_dir, force=force, **options)
        run = AsyncRun(self._started().submit(request, _streamed(on_output)))
        try:
            if on_output is not None:
                async for piece in run:
                    waits = on_output(piece)
                    if waits is not None:
                        await waits
            return await run.result()
        except BaseException:
            run._run._abandon()
            raise

    async def close(self) -> None:
        """Cancel what runs, and wait until the session and all of its sandboxes are gone.
        Who waits for a start has SessionClosed."""
        if self._starting is not None:
            (start, starting), self._starting = self._starting, None
            start.give_up()
            try:
                await asyncio.wait([starting])
            except asyncio.CancelledError:
                starting.add_done_callback(_leave_started)
                raise
            if starting.exception() is None:  # it was quicker
                self._core = starting.result()
        if self._core is not None:
            await asyncio.shield(asyncio.to_thread(self._core.close))


def run(*, binary: Union[str, "os.PathLike[str]", None] = None, flags: Words = (), **request: Any) -> Result:
    """Run one program in a fresh sandbox, with the arguments of Session.run and allow_degraded, allow_mount and
    cgroup_parent of Session. Many at once: Session."""
    for_all = {k: request.pop(k) for k in list(request) if _name(k) in _FOR_ALL}
    with Session(binary=binary, flags=flags, max_running=1, **for_all) as session:
        return session.run(**request)
