"""Tests of sandglass.py against the real binary: SANDGLASS is its path,
SANDGLASS_FLAGS what every session needs on this host."""

import ast
import asyncio
import gc
import json
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import sandglass

FLAGS = os.environ.get("SANDGLASS_FLAGS", "").split()


def session(**options):
    return sandglass.Session(flags=FLAGS, **options)


class Runs(unittest.TestCase):
    """What a good session does."""

    @classmethod
    def setUpClass(cls):
        cls.box = session(max_running=4, timeout="20s", env={"A": "session"})

    @classmethod
    def tearDownClass(cls):
        cls.box.close()

    def test_code(self):
        self.assertIn("python", self.box.languages)
        r = self.box.run(code="import sys, os\nprint(sys.argv[1:], sys.stdin.buffer.read(), os.environ['A'], os.environ['B'])\nsys.exit(3)",
                         lang="python", args=["a", "b c"], stdin=b"\x00\xff", env={"B": "é\n"}, timeout=15, memory="100m")
        self.assertEqual((r.outcome, r.exit_code, r.signal, r.error, r.ok), ("exited", 3, None, None, False))
        self.assertEqual(r.stdout, "['a', 'b c'] b'\\x00\\xff' session é\n\n")
        self.assertEqual((r.raw["schema"], r.raw["limits"]["timeout"]["value"], r.raw["limits"]["memory"]["value"]), (1, 15000, 100 << 20))
        with self.assertRaises(sandglass.RunError) as caught:
            r.check()
        self.assertEqual((str(caught.exception), caught.exception.result), ("the program ended as exited, exit code 3", r))
        self.assertIs(r.warm, False)
        with self.assertRaises(sandglass.RunError) as caught:
            self.box.run(code="raise ValueError('no \\33[31m')", lang="python").check()
        self.assertEqual(str(caught.exception), "the program ended as exited, exit code 1: ValueError: no ?[31m")

    def test_outcomes(self):
        r = self.box.run(command=["sh", "-c", "echo begun; printf '\\377' >&2; sleep 100"], timeout=3)
        self.assertEqual((r.outcome, r.exit_code, r.stdout, r.stderr_bytes), ("timeout", 124, "begun\n", b"\xff"))
        r = self.box.run(command=["sh", "-c", "kill -9 $$"])
        self.assertEqual((r.outcome, r.signal), ("signaled", 9))
        r = self.box.run(command=["sh", "-c", "yes | head -c 5000"], output_limit=1024)
        self.assertEqual((len(r.stdout_bytes), r.stdout_truncated, r.stderr_truncated), (1024, True, False))

    def test_files(self):
        with tempfile.TemporaryDirectory() as d:
            source = os.path.join(d, "source")
            with open(source, "w") as f:
                f.write("from the host\n")
            os.chmod(d, 0o755)
            r = self.box.run(command=["sh", "-c", "cat a b/c d; ./x; printf '\\0' >/out/bytes; echo text >/out/text; ln -s /etc /out/link; : >/out/empty"],
                             files=[sandglass.File("a", "text\n"), sandglass.File("b/c", b"bytes\n"), sandglass.File("d", source=source),
                                    sandglass.File("x", "#!/bin/sh\necho run\n", executable=True)], artifacts_inline="1m")
            self.assertEqual((r.stdout, r.stderr), ("text\nbytes\nfrom the host\nrun\n", ""))
            self.assertEqual({a.path: a.data for a in r.artifacts}, {"bytes": b"\0", "text": b"text\n", "link": None, "empty": b""})
            self.assertTrue([a.skipped for a in r.artifacts if a.path == "link"][0])
            out = os.path.join(d, "out")
            r = self.box.run(command=["sh", "-c", "cat in >/out/copy"], files={"in": "x"}, artifacts_dir=out)
            self.assertEqual([a.path for a in r.artifacts], ["copy"])
            with open(os.path.join(out, "copy")) as f:
                self.assertEqual(f.read(), "x")

    def test_streaming(self):
        pieces = []
        r = self.box.run(command=["sh", "-c", "echo one; echo two >&2; head -c 200000 /dev/zero"], on_output=pieces.append)
        self.assertEqual(b"".join(p.data for p in pieces if p.stream == "stdout"), b"one\n" + bytes(200000))
        self.assertEqual("".join(p.text for p in pieces if p.stream == "stderr"), "two\n")
        self.assertEqual((r.stdout, r.raw["stdout"]["bytes"]), ("", 200004))

    def test_many_threads(self):
        got = {}

        def work(n):
            got[n] = self.box.run(command=["echo", str(n)]).stdout

        threads = [threading.Thread(target=work, args=(n,)) for n in range(12)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(got, {n: "%d\n" % n for n in range(12)})

    def test_refused(self):
        with self.assertRaises(sandglass.Refused) as caught:
            self.box.run(command=["true"], timeout="soon")
        self.assertTrue(caught.exception.message.startswith("timeout: "), caught.exception)
        self.assertTrue(caught.exception.hints)
        self.assertEqual(caught.exception.exit_code, 125)
        with self.assertRaises(sandglass.Refused) as caught:
            self.box.run(command=["no-such-command"])
        self.assertEqual(caught.exception.exit_code, 127)
        for wrong in (dict(command="echo hi"), dict(command=["a"], code="x"), dict(command=["a"], memory=object()), dict(command=["\udcff"]),
                      dict(command=["a"], files=[sandglass.File("x")]), dict(command=["cat"], stdin="x" * (17 << 20))):
            with self.assertRaises(sandglass.RequestError):
                self.box.run(**wrong)
        self.assertEqual(self.box.run(command=["echo", "on"]).stdout, "on\n")

    def test_wrong_arguments(self):
        """Each says which argument is wrong, in this library's words, and nothing is run."""
        yes = dict(command=["true"])
        for wrong, text in (
            (dict(code=b"1", lang="python"), "code is of type bytes, and must be str"),
            (dict(code="1", lang=1), "lang is of type int"),
            (dict(command=[1]), "command[0] is of type int"),
            (dict(command=["a", None]), "command[1] is None"),
            (dict(yes, args="x"), "args is of type str, and must be a list of str"),
            (dict(yes, stdin=5), "stdin is of type int"),
            (dict(yes, env=["A=b"]), "env is of type list"),
            (dict(yes, env={"A": 1}), "env['A'] is of type int"),
            (dict(yes, files=["x"]), "files[0] is of type str, and must be File"),
            (dict(yes, files={"x": 1}), "files['x'] is of type int"),
            (dict(yes, files="x"), "files is of type str"),
            (dict(yes, files=[sandglass.File("x", data=1)]), "files['x'].data is of type int"),
            (dict(yes, files=[sandglass.File(b"x", data="")]), "path of a File is of type bytes"),
            (dict(yes, artifacts_inline=[]), "artifacts_inline is of type list"),
            (dict(yes, memory=object()), "option memory is of type object, and must be a string, number, bool or list of these"),
            (dict(yes, timeout=float("nan")), "option timeout: nan is no number that a limit can have"),
            (dict(yes, cpus=[float("inf")]), "option cpus: inf is no number"),
            (dict(yes, force=True), "force is for artifacts_dir: what is there is replaced"),
            (dict(yes, force="no", artifacts_dir="x"), "force is of type str, and must be True or False"),
            (dict(yes, files=[sandglass.File("x", "y", executable="no")]), "files['x'].executable is of type str, and must be True or False"),
            (dict(yes, on_output=5), "on_output is of type int, and must be a function"),
            (dict(code="\udcff", lang="sh"), "code has half of a surrogate pair, and UTF-8 cannot say that: '\\udcff'"),
            (dict(), "a run has one of code (with lang), command and file"),
            (dict(yes, code="1", lang="sh"), "a run has one of code (with lang), command and file"),
            (dict(comand=["true"]), "unknown argument comand\nhint: did you mean command?"),
            (dict(code="1", language="sh"), "unknown argument language\nhint: did you mean lang?"),
            (dict(yes, timout=1), "unknown argument timout\nhint: did you mean timeout?"),
            (dict(yes, output_limits=1), "unknown argument output_limits\nhint: did you mean output_limit?"),
            (dict(yes, allow_degraded="memory"), "allow_degraded is for the whole session, and not for one run of it\nhint: Session(allow_degraded=...)"),
            (dict(yes, stream=True), "stream is for submit(), and on_output for run()"),
            (dict(yes, warm="python=1"), "warm is for the whole session, and not for one run of it\nhint: Session(warm=...)"),
        ):
            with self.subTest(text), self.assertRaises(sandglass.RequestError) as caught:
                self.box.run(**wrong)
            self.assertIn(text, str(caught.exception))
        for wrong, text in ((dict(timout=1), "unknown argument timout\nhint: did you mean timeout?"), (dict(env=["A=b"]), "env is of type list"),
                            (dict(memory=object()), "option memory is of type object"), (dict(binary=""), "binary is empty, and must be a path"),
                            (dict(timeout=float("inf")), "option timeout: inf is no number")):
            with self.subTest(text), self.assertRaises(sandglass.RequestError) as caught:
                session(**wrong)
            self.assertIn(text, str(caught.exception))
        for wrong, kind, text in (
            (dict(yes, output_limit="100m"), sandglass.Refused,
             'output_limit: 100m is too much to collect: at most 16m\nhint: run(on_output=...), or submit(stream=True)\nhint: output_limit="16m"'),
            (dict(code="1"), sandglass.Refused, 'code: the language is missing\nhint: lang="python"'),
        ):
            with self.assertRaises(kind) as caught:
                self.box.run(**wrong)
            self.assertEqual(str(caught.exception), text)
        for stream in ("no", 1):
            with self.assertRaisesRegex(sandglass.RequestError, "^stream is of type .*, and must be True or False"):
                self.box.submit(stream=stream, **yes)
        with self.assertRaisesRegex(sandglass.RequestError, "stream=True"):
            iter(self.box.submit(command=["true"]))

    def test_empty_paths(self):
        """Made absolute, an empty path is the caller's directory, where the program's files would be written."""
        class Empty:
            def __fspath__(self):
                return ""

        class Bytes:
            def __fspath__(self):
                return b"/tmp"

        was = os.getcwd()
        with tempfile.TemporaryDirectory() as d:
            os.chdir(d)
            self.addCleanup(os.chdir, was)
            leaves = dict(command=["sh", "-c", "echo planted >/out/planted"])
            for path, text in (("", "%s is empty, and must be a path"), (Empty(), "%s is empty, and must be a path"),
                               (pathlib.Path(""), "%s is Path('.'), which an empty Path is too"), (Bytes(), "%s is of type bytes")):
                for name, request in (("artifacts_dir", dict(leaves, artifacts_dir=path)), ("file", dict(file=path)),
                                      ("files['x'].source", dict(leaves, files=[sandglass.File("x", source=path)]))):
                    with self.subTest(name, path=path), self.assertRaises(sandglass.RequestError) as caught:
                        self.box.run(**request)
                    self.assertTrue(caught.exception.message.startswith(text % name), caught.exception)
            for name in ("volume", "image", "workdir", "venv", "env_file", "seccomp", "mount"):
                for path, kind in (("", sandglass.Refused), (Empty(), sandglass.RequestError), ([""], sandglass.Refused)):
                    with self.subTest(name, path=path), self.assertRaises(kind):
                        self.box.run(command=["true"], **{name: path})
            for volume in (":/d", "./:", ":"):
                with self.subTest(volume), self.assertRaisesRegex(sandglass.Refused, "^volume: "):
                    self.box.run(command=["true"], volume=volume)
            self.assertEqual(os.listdir(d), [])

    def test_false_is_said(self):
        """A bool that an option of a session cannot have is refused, as that of a run is."""
        for value in (True, False):
            for what in (lambda v: session(memory=v), lambda v: self.box.run(command=["true"], memory=v)):
                with self.assertRaisesRegex(sandglass.Refused, '^memory: "%s" is not a size' % str(value).lower()):
                    what(value)
        with session(pty=True, explain_denials=False) as box:
            self.assertEqual(box.run(command=["test", "-e", "/dev/pts/ptmx"]).exit_code, 0)
            self.assertEqual(box.run(command=["test", "-e", "/dev/pts/ptmx"], pty=False).exit_code, 1)

    def test_none_is_the_default(self):
        with session(memory=None, timeout="17s") as box:
            limits = box.run(command=["true"], timeout=None).raw["limits"]
            self.assertEqual((limits["timeout"]["value"], limits["memory"]["value"]), (17000, 256 << 20))

    def test_hints(self):
        """Every hint of a session's, as integration/clients finds them in its source."""
        here = os.path.dirname(os.path.abspath(__file__))
        with open(os.path.join(here, "..", "hints.json"), encoding="utf-8") as f:
            rows = json.load(f)
        with tempfile.TemporaryDirectory() as d:
            with open(os.path.join(d, "hints"), "w", encoding="utf-8") as f:
                f.write("".join("hint: %s\n" % r["hint"] for r in rows))
            path = os.path.join(d, "sandglass")
            with open(path, "w") as f:
                f.write("#!/bin/sh\necho 'sandglass: error: no' >&2; cat \"${0%/*}/hints\" >&2; exit 125\n")
            os.chmod(path, 0o755)
            with self.assertRaises(sandglass.Refused) as caught:
                sandglass.Session(binary=path)
        self.assertEqual(len(caught.exception.hints), len(rows))
        for r, said in zip(rows, caught.exception.hints):
            self.assertEqual(said, r["python"])
            if re.match("[a-z_]+=", said):  # can be pasted
                ast.parse("run(%s\n)" % said)

    def test_hints_that_repeat_a_request(self):
        """An argument that a model chose is never taken for a part of our own line, and no hint costs the refusal that it came with."""
        for hint, said in (
            ("sandglass run --lang go x.go '<'   # says what language it is", 'lang="go", file="x.go", args=["<"]   # says what language it is'),
            ("sandglass run --image python /data/tool '<'   # a copy", 'image="python", file="/data/tool", args=["<"]   # a copy'),
            ("sandglass run /data/tool '<' x   # a copy", 'file="/data/tool", args=["<", "x"]   # a copy'),
            ("sandglass run -v /srv:/task -- go run /task/x.go '<b>'", 'volume="/srv:/task", command=["go", "run", "/task/x.go", "<b>"]'),
            ("sandglass run --lang go x.go '$PWD/x' '$(id -u)'", 'lang="go", file="x.go", args=["$PWD/x", "$(id -u)"]'),
            ("sandglass run --lang go x.go 'a   # b'   # c", 'lang="go", file="x.go", args=["a   # b"]   # c'),
            ("sandglass run --lang go x.go 'a   # b'", None),
            ("sandglass run x: -v b", 'image="x:", command=["-v", "b"]'),
            ("sandglass run --lang go x.go 'a sandglass run FILE b'", 'lang="go", file="x.go", args=["a sandglass run FILE b"]'),
            ("ls -ld -- '/a sandglass run FILE; sandglass run --cgroup-parent x script.py'", None),
            ("sandglass run -- COMMAND <", None),
            ("sandglass run --constructor", None),
            ("--constructor x", 'constructor="x"'),
            ("sandglass run --lang 'go", None),
            ('sandglass run "', None),
            ("sandglass run a\0<", None),
            ("-v", None),
            ("", None),
        ):
            self.assertEqual(sandglass._hint(hint), said or hint)
        for n in range(2000):  # all that the words of a line can be made of
            line = "".join(random.Random(n).choices(["'", '"', "\\", "<", " ", "-- ", "-e ", "--lang ", "$PWD", "#", "   # ", "=", ".py", "x: ", "\n"], k=12))
            for begin in ("", "sandglass run ", "why: --"):
                self.assertIsInstance(sandglass._hint(begin + line), str)

    def test_long_hints(self):
        """They cost what their length is, and not its square."""
        for hint in ("sandglass run x" + " " * 400_000 + "y", " " * 400_000, "   # " * 100_000, "sandglass run " + "a: " * 100_000, "sandglass run " * 30_000,
                     "'" * 399_999, "sandglass run -- " + " <a" * 100_000):
            begun = time.process_time()
            sandglass._hint(hint)
            self.assertLess(time.process_time() - begun, 60)  # the square is ten minutes and more

    def test_hints_of_results(self):
        def hinted(said, hints, **request):
            r = self.box.run(**request)
            self.assertEqual((r.error, r.hints), (said, hints))
            return r

        for size, hints in ((3000000, ['artifacts_inline="4m"']), (9000000, ['artifacts_dir="DIR"   # the result has room for 8m'])):
            hinted("artifacts: 1 entry was not collected: larger than the limit of one file, 1048576 bytes", hints,
                   command=["sh", "-c", "head -c %d /dev/zero >/out/x" % size], artifacts_inline="1m")
        self.assertIsNone(self.box.run(command=["sh", "-c", "head -c 3000000 /dev/zero >/out/x"], artifacts_inline="4m").error)
        with tempfile.TemporaryDirectory() as d:
            with open(os.path.join(d, "x"), "w"):
                pass
            r = hinted('artifacts_dir %s: the destination already has 1 artifact: "x"' % d, ["force=True   # to overwrite them"],
                       command=["sh", "-c", "echo y >/out/x"], artifacts_dir=d)
            self.assertEqual(r.artifacts[0].skipped, "exists (use force=True)")
            self.assertTrue(self.box.run(command=["sh", "-c", "echo y >/out/x"], artifacts_dir=d, force=True).ok)
        all_ = 'Session(allow_mount="/etc"), or sandglass.run(..., allow_mount="/etc")'
        yes = dict(command=["true"])
        for request, text in (
            (dict(yes, artifacts_inline="1g"), 'artifacts_inline: 1g is too much to hold in the result: at most 8m\nhint: artifacts_inline="8m"'),
            (dict(yes, artifacts_inline=""), 'artifacts_inline: "" is not a size\nhint: write bytes with a unit: 64k, 256m, 1g'),
            (dict(yes, artifacts_inline=-1), 'artifacts_inline: "-1" is negative or not a size\nhint: write bytes with a unit: 64k, 256m, 1g'),
            (dict(yes, volume="/etc:/d"), 'volume: host path "/etc" is refused: it holds the host\'s accounts, keys and settings\n'
             'hint: if it must be this path: %s\nhint: share only the files the task needs: volume=os.getcwd() + "/task:/task:ro"' % all_),
            (dict(yes, files={"f%d" % n: "" for n in range(1001)}),
             'files: there are more than 1000\nhint: volume="/srv/data:/data:ro"   # shows a whole directory'),
            (dict(code="", lang="python"),
             'nothing to run\nhint: file="script.py"\nhint: code="print(1)", lang="python"\nhint: image="host", command=["COMMAND"]'),
            (dict(yes, net_rate="1m"), 'net_rate means nothing without allow_host\nhint: allow_host="example.org:443"'),
            (dict(yes, out="x"), "out is refused: it is artifacts_dir or artifacts_inline of a run\nhint: sandglass session --help"),
            (dict(command=["--out: x"]), "command not found: \"--out: x\"\nhint: command=[\"ls\", \"/usr/bin\"]   # the commands that are inside"),
        ):
            with self.subTest(text), self.assertRaises(sandglass.Refused) as caught:
                self.box.run(**request)
            self.assertEqual(str(caught.exception), text)

    def test_exception_cancels(self):
        class Enough(Exception):
            pass

        def enough(_):
            raise Enough

        with session(max_running=1, max_queued=0) as box:
            with self.assertRaises(Enough):
                box.run(command=["sh", "-c", "echo; sleep 1000"], on_output=enough, timeout="1h")
            while True:  # its place is free when it is gone
                try:
                    self.assertEqual(box.run(command=["echo", "next"]).stdout, "next\n")
                    break
                except sandglass.Busy:
                    pass

    def test_busy_and_cancel(self):
        with session(max_running=1, max_queued=1) as box:
            run = box.submit(command=["sh", "-c", "echo here; sleep 1000"], stream=True, timeout="1h")
            pieces = iter(run)
            self.assertEqual(next(pieces).text, "here\n")
            waits = box.submit(command=["true"])
            with self.assertRaisesRegex(sandglass.Busy, "(?s)^the session is busy: 1 run and 1 wait\nhint: .*try again"):
                box.run(command=["true"])
            with self.assertRaises(TimeoutError):
                run.result(wait=0)
            waits.cancel()
            with self.assertRaises(sandglass.Canceled) as caught:
                waits.result()
            self.assertIsNone(caught.exception.result)
            run.cancel()
            with self.assertRaises(sandglass.Canceled) as caught:
                run.result()
            self.assertEqual(caught.exception.result.outcome, "canceled")

    def test_one_shot(self):
        self.assertEqual(sandglass.run(code="echo $0", lang="sh", flags=FLAGS).check().exit_code, 0)
        self.assertEqual(sandglass.run(command=["true"], flags=FLAGS, allow_degraded="cpu").exit_code, 0)
        with self.assertRaises(sandglass.Refused) as caught:
            sandglass.run(command=["true"], flags=["--privileged"])
        self.assertTrue(caught.exception.message.startswith("privileged is refused: "), caught.exception)


class Ends(unittest.TestCase):
    """Every way to an end: nobody waits for ever, and nothing is left."""

    def begun(self, box):
        run = box.submit(command=["sh", "-c", "echo here; sleep 1000"], stream=True, timeout="1h")
        pieces = iter(run)
        self.assertEqual(next(pieces).text, "here\n")
        self.addCleanup(pieces.close)  # held until then: who leaves the loop cancels the run
        return run

    def test_close_cancels(self):
        box = session()
        run = self.begun(box)
        box.close()
        self.assertEqual(box._core._process.returncode, 0)
        with self.assertRaises(sandglass.Canceled):
            run.result()
        with self.assertRaises(sandglass.SessionClosed):
            box.run(command=["true"])
        box.close()

    def test_killed(self):
        box = session(max_running=1)
        runs = [self.begun(box), box.submit(command=["true"])]
        os.kill(box._core._process.pid, signal.SIGKILL)
        for run in runs:
            with self.assertRaisesRegex(sandglass.SessionClosed, "signal 9"):
                run.result(wait=60)
        with self.assertRaises(sandglass.SessionClosed):
            box.run(command=["true"])
        box.close()

    def test_output_that_nobody_takes(self):
        """Nothing is read past the bound, and an end comes all the same."""
        box = session(max_running=2)
        run = box.submit(command=["sh", "-c", "yes | head -c 12000000"], stream=True, output_limit="16m", timeout="2m")
        self.filled(run)
        with run._changed:  # without the bound it would all be here, and the run over
            self.assertFalse(run._changed.wait_for(lambda: run.done, 2))
        self.assertLessEqual(run._waiting, sandglass._MAX_WAITING)
        self.assertEqual(sum(len(p.data) for p in run), 12000000)
        run = box.submit(command=["sh", "-c", "yes | head -c 12000000"], stream=True, output_limit="16m", timeout="2m")
        self.filled(run)
        box.close()
        self.assertEqual(box._core._process.returncode, 0)

    FLOOD = dict(command=["sh", "-c", "exec yes abc"], stream=True, output_limit="10g", timeout="1h")

    def filled(self, run):
        """As much waits as may: the next piece may be too large for the rest."""
        def full():
            w = run._window  # what was taken of it is not given back yet
            return (run._waiting + (w._bytes if w else 0) > sandglass._MAX_WAITING - (64 << 10)
                    or w is not None and len(run._pieces) + w._pieces >= 1024)

        with run._changed:
            self.assertTrue(run._changed.wait_for(full, 60))

    def flooded(self, box, take=1):
        """A run whose output fills all there is, and an iterator that has taken some of it."""
        run = box.submit(**self.FLOOD)
        pieces = iter(run)
        for _ in range(take):
            next(pieces)
        self.filled(run)
        return run, pieces

    def without_windows(self, box):
        """The session as one that knows none."""
        box._core.hello["features"].remove("window")
        return box

    def answers(self, box):
        run = box.submit(command=["echo", "hi"])
        self.assertEqual(run.result(wait=60).stdout, "hi\n")

    def test_stream_that_is_left(self):
        """Whatever a caller does who wants no more of a stream, others are answered."""
        for way in ("cancel", "cancel by another", "break", "del"):
            with self.subTest(way), self.without_windows(session(max_running=2)) as box:
                patience, sandglass._PATIENCE = sandglass._PATIENCE, 1e9
                self.addCleanup(setattr, sandglass, "_PATIENCE", patience)
                run, pieces = self.flooded(box, take=0 if way == "del" else 1)
                if way == "cancel":
                    run.cancel()
                    self.answers(box)
                    self.assertGreater(sum(len(p.data) for p in pieces), 0)  # what waited is still there
                elif way == "cancel by another":
                    other = box.submit(command=["echo", "hi"])
                    threading.Timer(0.1, run.cancel).start()
                    self.assertEqual(other.result(wait=60).stdout, "hi\n")
                elif way == "break":
                    for _ in run:
                        break
                    self.answers(box)
                else:
                    del run, pieces
                    self.answers(box)
                    continue
                with self.assertRaises(sandglass.Canceled):
                    run.result(wait=60)

    def test_stream_holds_up_itself_alone(self):
        with session(max_running=2) as box:
            patience, sandglass._PATIENCE = sandglass._PATIENCE, 0.001  # for a session that knows no windows
            self.addCleanup(setattr, sandglass, "_PATIENCE", patience)
            run, pieces = self.flooded(box)
            for _ in range(3):
                self.answers(box)
            length = 0
            while length < 20000000:  # more than the window: room comes back
                length += len(next(pieces).data)
            run.cancel()
            with self.assertRaisesRegex(sandglass.Canceled, "^the run was cancelled$"):
                run.result(wait=60)

    def test_stream_that_is_dropped(self):
        """What nobody will take gives its room back, and the program goes on to its end."""
        long = dict(command=["sh", "-c", "yes | head -c 12000000"], stream=True, output_limit="16m", timeout="1h")
        with session(max_running=1) as box:
            run = box.submit(**long)
            self.filled(run)
            self.assertEqual(run.result(wait=60).raw["stdout"]["kept"], 12000000)
            run = box.submit(**long)
            self.filled(run)
            del run
            self.answers(box)

    def test_stream_that_nobody_reads(self):
        with self.without_windows(session(max_running=2)) as box:
            patience, sandglass._PATIENCE = sandglass._PATIENCE, 0.5
            self.addCleanup(setattr, sandglass, "_PATIENCE", patience)
            run, pieces = self.flooded(box)
            with run._changed:  # alone it may wait
                self.assertFalse(run._changed.wait_for(lambda: run._given_up, 2))
            self.answers(box)
            with self.assertRaisesRegex(sandglass.Canceled, "nobody took"):
                for _ in pieces:
                    pass
            with self.assertRaisesRegex(sandglass.Canceled, "nobody took"):
                run.result(wait=60)

    def test_fork(self):
        with session() as box:
            asks, done = os.pipe()
            child = os.fork()
            if child == 0:
                os.close(done)
                try:
                    box.run(command=["true"])
                    code = 1
                except sandglass.SessionClosed:
                    box.close()
                    code = 0
                os.read(asks, 1)  # lives on until the parent has closed
                os._exit(code)
            os.close(asks)
            self.assertEqual(box.run(command=["echo", "on"]).stdout, "on\n")
            box.close()
            self.assertEqual(box._core._process.returncode, 0)  # it saw its end, and was not killed
            os.close(done)
            self.assertEqual(os.waitpid(child, 0)[1], 0)

    def test_no_descriptor_for_others(self):
        with session() as box:
            mine = {os.readlink("/proc/self/fd/%d" % f.fileno()) for f in (box._core._process.stdin, box._core._process.stdout, box._core._process.stderr)}
            list_ = "import os\nfor n in os.listdir('/proc/self/fd'):\n  try: print(os.readlink('/proc/self/fd/' + n))\n  except OSError: pass"
            text = subprocess.run([sys.executable, "-c", list_], close_fds=False, stdout=subprocess.PIPE, check=True).stdout.decode()
            self.assertEqual((len(mine), mine & set(text.split("\n"))), (3, set()))

    def test_interrupt(self):
        program = ("import sandglass, sys\n"
                   "with sandglass.Session(flags=sys.argv[1:]) as box:\n"
                   "  try: box.run(command=['sh', '-c', 'echo here; sleep 1000'], timeout='1h', on_output=lambda p: print(p.text, end='', flush=True))\n"
                   "  except KeyboardInterrupt: print(box.run(command=['echo', 'on']).stdout, end='')\n")
        p = subprocess.Popen([sys.executable, "-c", program, *FLAGS], stdout=subprocess.PIPE, start_new_session=True)
        self.assertEqual(p.stdout.readline(), b"here\n")
        os.killpg(p.pid, signal.SIGINT)  # as a terminal does
        self.assertEqual(p.communicate()[0], b"on\n")
        self.assertEqual(p.returncode, 0)

    def test_forgotten(self):
        """It is closed, and not killed: it takes its sandboxes apart itself."""
        box = session(max_running=2)
        process = box._core._process
        box.submit(command=["sleep", "1000"], timeout="1h")
        self.assertEqual(box.run(command=["echo", "behind it"]).stdout, "behind it\n")
        box.itself = box
        del box
        gc.collect()
        self.assertEqual(process.wait(60), 0)

    def test_run_of_a_forgotten_session(self):
        run = session().submit(command=["echo", "hi"])
        process = run._core._process
        gc.collect()
        self.assertEqual(run.result(wait=60).stdout, "hi\n")
        del run
        self.assertEqual(process.wait(60), 0)

    def test_exit(self):
        """The interpreter's end waits until sessions that nobody has closed are gone, with what runs in them."""
        kept = ("box = sandglass.Session(binary=sys.argv[1], flags=sys.argv[2:], max_running=2)\n"
                "box.submit(command=['sleep', '1000'], timeout='1h')\n"
                "print(box.run(command=['echo', 'on']).stdout, end='', flush=True)\n")
        tasks = ("async def main():\n"
                 "  global box\n"
                 "  box = await (await sandglass.AsyncSession(binary=sys.argv[1], flags=sys.argv[2:], max_running=2).start()).start()\n"
                 "  await box.submit(command=['sleep', '1000'], timeout='1h')\n"
                 "  print((await box.run(command=['echo', 'on'])).stdout, end='')\n"
                 "asyncio.run(main())\n")
        fork = kept + ("child = os.fork()\n"
                       "if child == 0: sys.exit(7)\n"
                       "print(os.waitpid(child, 0)[1] >> 8, box.run(command=['echo', 'still']).stdout, end='', flush=True)\n")
        for name, program, said in (("kept", kept, "on\n"), ("forgotten", kept + "del box\n", "on\n"), ("exit", kept + "sys.exit(3)\n", "on\n"),
                                    ("exception", kept + "sys.stderr = None\nraise ValueError\n", "on\n"), ("tasks", tasks, "on\n"),
                                    ("fork", fork, "on\n7 still\n")):
            with self.subTest(name), tempfile.TemporaryDirectory() as d:
                path = os.path.join(d, "sandglass")
                with open(path, "w") as f:
                    f.write('#!/bin/sh\n%s "$@"; echo $? >>"$0.code"\n' % os.environ["SANDGLASS"])
                os.chmod(path, 0o755)
                p = subprocess.run([sys.executable, "-c", "import asyncio, os, sandglass, sys\n" + program, path, *FLAGS],
                                   stdout=subprocess.PIPE)
                with open(path + ".code") as f:  # there when the interpreter has ended
                    self.assertEqual((p.stdout.decode(), f.read()), (said, "0\n"))

    def test_forgotten_in_a_child(self):
        box = session()
        child = os.fork()
        if child == 0:
            del box
            gc.collect()
            os._exit(0)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        self.assertEqual(box.run(command=["echo", "on"]).stdout, "on\n")
        box.close()


HELLO = '{"type":"hello","protocol":1,"version":"x","limits":{"line_bytes":1000,"collect_bytes":10,"inline_bytes":10},"features":[],"languages":[]}'
RESULT = ('{"outcome":"exited","exit_code":0,"wall_ms":1,"setup_ms":1,"cpu_ms":1,"memory_peak_bytes":1,"pids_peak":1,"oom_kills":0,'
          '"stdout":{"text":"","truncated":false},"stderr":{"text":"","truncated":false},"artifacts":[]}')


class Strange(unittest.TestCase):
    """What is started is no session, or a broken one."""

    def fake(self, script):
        d = tempfile.TemporaryDirectory()
        self.addCleanup(d.cleanup)
        path = os.path.join(d.name, "sandglass")
        with open(path, "w") as f:
            f.write("#!/bin/sh\n" + script)
        os.chmod(path, 0o755)
        return path

    def test_no_session(self):
        for script, kind, text in (
            ("exit 3", sandglass.ProtocolError, "ended with 3"),
            ("echo nonsense; exec cat", sandglass.ProtocolError, "cannot be read"),
            ("echo '[]'; exec cat", sandglass.ProtocolError, "cannot be read"),
            ("""echo '{"type":"hello","protocol":2}'; exec cat""", sandglass.ProtocolError, "protocol 2"),
            ("echo 'sandglass: error: no, here' >&2; echo 'hint: try' >&2; exit 125", sandglass.Refused, "no, here\nhint: try"),
            ("yes | head -c 3000000 | tr -d '\\n'; exec cat", sandglass.ProtocolError, "longer than"),
        ):
            with self.assertRaises(kind) as caught:
                sandglass.Session(binary=self.fake(script))
            self.assertIn(text, str(caught.exception))
        with self.assertRaises(sandglass.NotInstalled):
            sandglass.Session(binary="/nonexistent/sandglass")
        for given in {"binary": "a\0b"}, {"flags": ["a\0b"]}, {"memory": "a\0b"}, {"env": {"A": "a\0b"}}, {"allow_host": ["a\0b"]}:
            with self.assertRaisesRegex(sandglass.RequestError, r"an argument of sandglass session has a NUL character: '.*a\\x00b'"):
                sandglass.Session(**given)

    # It ends by a signal, and after the end of its requests.
    SILENT = """trap 'echo down >"$0.gone"; exit' TERM
echo up >"$0.up"
cat
while kill -0 "$PPID"; do sleep 1; done
"""

    def up(self, path):
        with open(path + ".up") as f:
            self.assertEqual(f.read(), "up\n")

    def silent(self):
        path = self.fake(self.SILENT)
        os.mkfifo(path + ".up")
        return path

    def took_itself_down(self, path):
        with open(path + ".gone") as f:
            self.assertEqual(f.read(), "down\n")

    def test_no_hello(self):
        """What a session had begun to make it removes itself."""
        path, start = self.silent(), sandglass._Start()
        start.over.wait = lambda _: self.up(path)
        with self.assertRaisesRegex(sandglass.ProtocolError, "says no hello"):
            sandglass._start(path, (), None, None, None, {}, start)
        self.took_itself_down(path)

    def test_start_that_is_given_up(self):
        path = self.silent()

        async def given_up():
            task = asyncio.create_task(sandglass.AsyncSession(binary=path).start())
            await asyncio.to_thread(self.up, path)
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task

        asyncio.run(given_up())
        self.took_itself_down(path)

    def test_close_in_a_start(self):
        """It gives the start up, and whoever waits for it is told."""
        path = self.silent()

        async def closed():
            box = sandglass.AsyncSession(binary=path)
            tasks = [asyncio.create_task(box.start()) for _ in range(2)]
            await asyncio.to_thread(self.up, path)
            await box.close()
            self.took_itself_down(path)
            for result in await asyncio.gather(*tasks, return_exceptions=True):
                self.assertIsInstance(result, sandglass.SessionClosed)
                self.assertEqual(str(result), "the start of the session was given up")
            await box.close()

        asyncio.run(closed())

    def test_close_behind_a_start(self):
        """The session is there, and whoever started it has not seen it yet."""
        path = self.fake("echo '%s'; cat; : >\"$0.gone\"" % HELLO)

        async def closed():
            box = sandglass.AsyncSession(binary=path)
            task = asyncio.create_task(box.start())
            await asyncio.sleep(0)
            await asyncio.wait([box._starting[1]])
            await box.close()
            self.assertTrue(os.path.exists(path + ".gone"))
            await task
            with self.assertRaises(sandglass.SessionClosed):
                await box.run(command=["true"])

        asyncio.run(closed())

    def test_starts_at_once(self):
        """They are one start; it goes on while anybody waits for it, and one that failed is tried again."""
        path = self.fake("echo $$ >>\"$0.began\"; test -e \"$0.not\" && exit 3; read go <\"$0.go\"; echo '%s'; exec cat" % HELLO)
        os.mkfifo(path + ".go")

        def go():
            with open(path + ".go", "w") as f:
                f.write("go\n")

        def began():
            with open(path + ".began") as f:
                return len(f.readlines())

        async def starts():
            box = sandglass.AsyncSession(binary=path)
            tasks = [asyncio.create_task(box.start()) for _ in range(3)]
            await asyncio.sleep(0)  # all wait
            tasks[0].cancel()
            with self.assertRaises(asyncio.CancelledError):
                await tasks[0]
            await asyncio.to_thread(go)
            self.assertEqual(await asyncio.wait_for(asyncio.gather(*tasks[1:]), 60), [box, box])
            self.assertIs(await box.start(), box)
            self.assertEqual(began(), 1)
            await box.close()
            with open(path + ".not", "w"):
                pass
            box = sandglass.AsyncSession(binary=path)
            for result in await asyncio.gather(box.start(), box.start(), return_exceptions=True):
                self.assertIsInstance(result, sandglass.ProtocolError)
            os.remove(path + ".not")
            await asyncio.gather(box.start(), asyncio.to_thread(go))
            self.assertEqual(began(), 3)
            await box.close()

        asyncio.run(starts())

    def test_exit_in_a_start(self):
        """One session that cannot be closed leaves no other open, nor does one whose threads are not started yet."""
        path = self.fake("echo '%s'; cat; echo ended >>\"$0.ended\"" % HELLO)
        program = ("import _thread, sandglass, sys, threading\n"
                   "begun, on = threading.Event(), threading.Event()\n"
                   "boxes = [sandglass.Session(binary=sys.argv[1]) for _ in range(2)]\n"
                   "class Thread(threading.Thread):\n"
                   "    def start(self): begun.set(); on.wait()\n"
                   "sandglass.threading.Thread = Thread\n"
                   "_thread.start_new_thread(sandglass.Session, (), dict(binary=sys.argv[1]))\n"
                   "begun.wait()\n"
                   "cores = sorted(sandglass._cores, key=lambda c: c not in [b._core for b in boxes])\n"
                   "class Broken(sandglass._Core):\n"
                   "    def __init__(self): pass\n"
                   "    def leave(self): raise RuntimeError('this one')\n"
                   "    close = lambda self, deadline=None: self.leave()\n"
                   "sandglass._cores = [Broken(), cores[2], *cores[:2]]\n")
        p = subprocess.run([sys.executable, "-c", program, path], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual(p.stderr.decode().count("RuntimeError: "), 1, p.stderr)
        self.assertIn("this one", p.stderr.decode())
        with open(path + ".ended") as f:
            self.assertEqual(f.read(), "ended\n" * 2)

    def test_forgotten_and_does_not_end(self):
        seconds, sandglass._END_SECONDS = sandglass._END_SECONDS, 0.2
        self.addCleanup(setattr, sandglass, "_END_SECONDS", seconds)
        box = sandglass.Session(binary=self.fake("echo '%s'\ncat\nexec sleep 1000" % HELLO))
        process = box._core._process
        del box
        self.assertEqual(process.wait(60), -signal.SIGKILL)

    def test_broken_session(self):
        for script, kind, text in (
            ("read x; printf '{\"type\":\"resu'", sandglass.SessionClosed, "in the middle of a reply"),
            ("read x; echo '{\"type\":\"error\",\"code\":\"too_large\",\"error\":\"x\"}'; exec cat", sandglass.ProtocolError, "about no run"),
            ("read x; yes 1234567 | head -c 3000000 >&2; echo 'sandglass: error: gone' >&2; exit 9", sandglass.SessionClosed, "gone"),
        ):
            box = sandglass.Session(binary=self.fake("echo '%s'\n%s" % (HELLO, script)))
            with self.assertRaises(kind) as caught:
                box.run(command=["true"])
            self.assertIn(text, str(caught.exception))
            box.close()

    def test_window_that_is_full(self):
        """A window is as much as waits where there is none, and the ends of streams come beyond it: that alone cancels nothing."""
        hello = HELLO.replace('},"features":[]', ',"window_bytes":1073741824,"window_pieces":1024},"features":["window"]')
        box = sandglass.Session(binary=self.fake(r"""echo '%s'
piece=$(head -c 65536 /dev/zero | tr '\0' a)
output() { echo "{\"type\":\"output\",\"id\":\"1\",\"stream\":\"stdout\",\"text\":\"$1\"}"; }
result() { echo "{\"type\":\"result\",\"id\":\"$1\",\"result\":$(echo '%s')}"; }
read x; i=0; while [ $i -lt 128 ]; do output $piece; i=$((i+1)); done
read x; output xy; output z; result 2; result 1; exec cat >/dev/null
""" % (hello, RESULT)))
        patience, sandglass._PATIENCE = sandglass._PATIENCE, 0.001
        self.addCleanup(setattr, sandglass, "_PATIENCE", patience)
        run = box.submit(command=["true"], stream=True)
        self.assertTrue(box.submit(command=["true"]).result(wait=60).ok)
        self.assertEqual(sum(len(p.data) for p in run), (8 << 20) + 3)
        box.close()


class Async(unittest.TestCase):
    def test_all(self):
        asyncio.run(self.all())

    async def all(self):
        async with sandglass.AsyncSession(flags=FLAGS, max_running=4) as box:
            results = await asyncio.gather(*(box.run(command=["echo", str(n)]) for n in range(8)))
            self.assertEqual([r.stdout for r in results], ["%d\n" % n for n in range(8)])
            pieces = []

            async def slowly(piece):
                await asyncio.sleep(0)
                pieces.append(piece.data)

            await box.run(command=["sh", "-c", "head -c 300000 /dev/zero"], on_output=slowly)
            self.assertEqual(b"".join(pieces), bytes(300000))
            run = await box.submit(command=["sh", "-c", "echo a; echo b"], stream=True)
            self.assertEqual("".join([p.text async for p in run]), "a\nb\n")
            self.assertEqual((await run.result()).exit_code, 0)
            with self.assertRaises(sandglass.Refused):
                await box.run(command=["true"], timeout="soon")
            with self.assertRaisesRegex(sandglass.RequestError, "^stream is for submit"):
                await box.run(command=["true"], stream=True)
            with self.assertRaisesRegex(sandglass.RequestError, "^on_output is for run"):
                await box.submit(command=["true"], on_output=print)

    def test_cancelled_task(self):
        asyncio.run(self.cancelled())

    async def cancelled(self):
        async with sandglass.AsyncSession(flags=FLAGS, max_running=1, max_queued=0) as box:
            begun = asyncio.Event()
            task = asyncio.create_task(box.run(command=["sh", "-c", "echo; sleep 1000"], timeout="1h", on_output=lambda _: begun.set()))
            await begun.wait()
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task
            while True:
                try:
                    self.assertEqual((await box.run(command=["echo", "next"])).stdout, "next\n")
                    return
                except sandglass.Busy:
                    pass

    def test_stream_that_is_left(self):
        asyncio.run(self.left())

    async def left(self):
        flood = dict(command=["sh", "-c", "exec yes abc"], stream=True, output_limit="10g", timeout="1h")
        patience, sandglass._PATIENCE = sandglass._PATIENCE, 1e9
        self.addCleanup(setattr, sandglass, "_PATIENCE", patience)
        async with sandglass.AsyncSession(flags=FLAGS, max_running=2) as box:
            box._core.hello["features"].remove("window")
            for way in ("cancel", "break", "del"):
                run = await box.submit(**flood)
                if way == "break":
                    async for _ in run:
                        break
                while way != "break" and run._run._waiting < sandglass._MAX_WAITING:
                    await asyncio.sleep(0.01)
                if way == "cancel":
                    run.cancel()
                elif way == "del":
                    del run
                self.assertEqual((await asyncio.wait_for(box.run(command=["echo", "hi"]), 60)).stdout, "hi\n")
                if way == "del":
                    continue
                with self.assertRaises(sandglass.Canceled):
                    await run.result()

    def test_forgotten(self):
        async def forgotten():
            box = await sandglass.AsyncSession(flags=FLAGS).start()
            run = await box.submit(command=["echo", "hi"])
            process = run._run._core._process
            del box
            gc.collect()
            self.assertEqual((await run.result()).stdout, "hi\n")
            return process

        self.assertEqual(asyncio.run(forgotten()).wait(60), 0)

    def test_killed(self):
        asyncio.run(self.killed())

    async def killed(self):
        box = await sandglass.AsyncSession(flags=FLAGS).start()
        run = await box.submit(command=["sh", "-c", "echo; sleep 1000"], stream=True, timeout="1h")
        pieces = run.__aiter__()
        await pieces.__anext__()
        os.kill(box._core._process.pid, signal.SIGKILL)
        with self.assertRaises(sandglass.SessionClosed):
            await run.result()
        await box.close()


if __name__ == "__main__":
    unittest.main()
