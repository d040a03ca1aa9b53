package session

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"sandglass/internal/testkit"
)

// pythons are programs of which an interpreter that was started before it had
// its text must make the same, to the byte, as one that is given a file.
var pythons = []string{
	"print(1)",
	"import sys; print(sys.argv, sys.orig_argv, sys.path, sys.flags, sys.stdin.read())",
	"import sys; print(__name__, __file__, __spec__, __doc__, __builtins__, __loader__.__class__, sorted(globals()), sorted(sys.modules))",
	"'''doc'''\nimport os; print(__doc__, dict(os.environ), os.getcwd(), open('/proc/self/cmdline').read(), os.listdir('/code'), oct(os.stat(__file__).st_mode))",
	"def f(x):\n    return 1 / x\n\nprint('before')\nf(0)  # comment\n",
	"def f():\n    raise ValueError('é')\ntry:\n    f()\nexcept ValueError as e:\n    raise KeyError('b') from e\n",
	"class E(Exception):\n    pass\nraise E('x', 2)\n",
	"import sys; sys.exit(7)",
	"import sys; sys.exit('a message')",
	"raise SystemExit",
	"raise SystemExit(None)",
	"import sys; sys.exit(2**40)",
	"import os; os._exit(9)",
	"import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
	"import os, signal; os.kill(os.getpid(), signal.SIGSEGV)",
	"raise KeyboardInterrupt",
	"print('x'\n",
	"def f():\nreturn 1\n",
	"print('no newline at the end')\n\n\n#",
	"\ufeffprint('a byte order mark')",
	"# -*- coding: utf-8 -*-\nprint('é')\n1/0",
	"# coding: latin-1\nprint('é')\n1/0",
	"print('a\\x00b')\nx = '\x00'",
	"import inspect, sys; print(inspect.getsource(sys.modules['__main__']))",
	"import main; print(main.__file__, __name__)",
	"import threading\ndef f(): 1/0\nt = threading.Thread(target=f); t.start(); t.join(); print('after')",
	"import atexit, sys\natexit.register(lambda: print('at exit'))\nsys.excepthook = lambda *a: print('hook', a[0])\n1/0",
	"import warnings; warnings.warn('careful')",
	"import multiprocessing as m\ndef f(x): return x * x\nif __name__ == '__main__':\n    m.set_start_method('spawn')\n    with m.Pool(1) as p: print(p.map(f, [1, 2, 3]))",
	"import subprocess, sys; print(subprocess.run([sys.executable, __file__, 'again'], stdin=subprocess.DEVNULL, capture_output=True, text=True).stdout) if len(sys.argv) == 1 else print(sys.argv)",
	"print(input('> '), input())",
	"import sys; sys.stdout.write('x' * 300000); sys.stderr.write('é' * 10)",
	"if True:\n\tprint(1)\n        print(2)\n",
	"# " + strings.Repeat("x", 200_000) + "\n1/0",
	"for f in '/code/main.py', '/code/x', '/code/.text', '/proc/self/fd/3':\n    try: open(f, 'r+b').write(b'x')\n    except OSError as e: print(e)",
	"import os; os.chmod('/code', 0o777)",
	archived("print('of the archive')"),
}

// archived is a text that is an archive too, with a program, which Python runs instead.
func archived(program string) string {
	for n := 0; ; n++ {
		text := fmt.Sprintf("%s  # %d", program, n)
		var b bytes.Buffer
		w := zip.NewWriter(&b)
		size := uint64(len(text))
		f, err := w.CreateRaw(&zip.FileHeader{Name: "__main__.py", CRC32: crc32.ChecksumIEEE([]byte(text)), CompressedSize64: size, UncompressedSize64: size})
		if err == nil {
			_, err = f.Write([]byte(text))
		}
		if err = errors.Join(err, w.Close()); err != nil {
			panic(err)
		}
		if utf8.Valid(b.Bytes()) { // else no request could have it
			return "print('of the text')\n#" + b.String()
		}
	}
}

// nodes are those for Node.
var nodes = []string{
	"console.log(1)",
	"console.log(process.argv, process.execArgv, __filename, __dirname, require.main === module, module.paths, Object.keys(require.cache), require('fs').readFileSync(0, 'utf8'))",
	"console.log(process.env, process.cwd(), require('fs').readFileSync('/proc/self/cmdline', 'utf8'), require('fs').readdirSync('/code'), require('fs').readFileSync(__filename, 'utf8'))",
	"function f() {\n  throw new Error('x')\n}\nf()",
	"throw 7",
	"process.exit(5)",
	"process.exitCode = 6",
	"process.kill(process.pid, 'SIGKILL')",
	"process.abort()",
	"Promise.reject(new TypeError('late'))",
	"const x = ;",
	"#!/usr/bin/env node\nconsole.log('é', new Error().stack)",
	"import fs from 'fs'; console.log(import.meta.url, fs.existsSync('/code/main.js'))",
	"console.log(await 1)",
	"process.on('exit', c => console.log('exit', c)); setTimeout(() => { console.log('timer') }, 1)",
	"const {Worker, isMainThread} = require('worker_threads'); if (isMainThread) new Worker(__filename); else console.log('worker')",
	"if (process.argv[2]) console.log('child'); else require('child_process').fork(__filename, ['x'])",
	"process.stdout.write('x'.repeat(300000))",
	"// " + strings.Repeat("x", 200_000) + "\nthrow new Error('far')",
	"for (const f of ['/code/main.js', '/code/x']) try { require('fs').appendFileSync(f, 'x') } catch (e) { console.log(e.code) }",
}

// TestWarmText: an interpreter that waited for its text gives what one gives that
// is started with a file.
func TestWarmText(t *testing.T) {
	for lang, programs := range map[string][]string{"python": pythons, "node": nodes} {
		t.Run(lang, func(t *testing.T) {
			command := map[string]string{"python": "python3", "node": "node"}[lang]
			testkit.Requires(t, command)
			testkit.Each(t, func(t *testing.T, who testkit.Who) {
				list := programs
				if who.IsRoot() {
					list = programs[:6] // whose the files are is what differs
				}
				compareTexts(t, who, lang, list)
			})
		})
	}
}

func compareTexts(t *testing.T, who testkit.Who, lang string, programs []string) {
	t.Helper()
	flags := []string{"--max-running", "1", "--pids-limit", "128", "--memory", "256m", "--timeout", "60s", "-e", "PYTHONHASHSEED=0"}
	cold := open(t, who, flags...)
	for now := range slices.Chunk(programs, 6) { // a small machine has memory for no more at once
		warm := openWarm(t, who, fmt.Sprintf("%s=%d", lang, len(now)), flags...)
		for i, code := range now {
			text, err := json.Marshal(code)
			if err != nil {
				t.Fatal(err)
			}
			r, ok := both(t, warm, cold, fmt.Sprint(i), fmt.Sprintf(`"code":%s,"lang":%q,"stdin":"one\ntwo"`, text, lang))
			if alike := !strings.Contains(code, "latin-1") && !strings.Contains(code, "__main__.py"); ok != alike {
				t.Errorf("%.80q: warm %v: %s %q", code, ok, r.Type, r.Error)
			}
		}
		warm.close()
	}
	cold.close()
}

// TestWarmTextTakesCodeAlone: what an interpreter gets when it is started cannot
// be given to one that runs: arguments, environment, files. Such runs go to a
// sandbox that waits for any program, or a new one.
func TestWarmTextTakesCodeAlone(t *testing.T) {
	testkit.Requires(t, "python3")
	who := testkit.AsUser(t)
	warm, cold := openWarm(t, who, "python=1", "--max-running", "1"), open(t, who, "--max-running", "1")
	for i, more := range []string{`,"args":["x"]`, `,"env":{"A":"b"}`, `,"files":[{"path":"x","text":"y"}]`, `,"options":{"workdir":"/tmp"}`} {
		r, _ := both(t, warm, cold, fmt.Sprint(i), `"code":"import sys,os; print(sys.argv, sorted(os.environ), os.listdir(), os.getcwd())","lang":"python"`+more)
		if r.Type != "result" || r.Result.Warm {
			t.Errorf("%s: %+v", more, r)
		}
	}
	if _, ok := both(t, warm, cold, "last", `"code":"print(1)","lang":"python","options":{"timeout":"60s","output-limit":"1k"}`); !ok {
		t.Error("code alone was run cold")
	}
	warm.close()
	cold.close()
	warm = openWarm(t, who, "python=1,command=1")
	warm.send(`{"type":"run","id":"1","code":"import sys; print(sys.argv[1], open('x').read())","lang":"python","args":["a"],"files":[{"path":"x","text":"y"}]}`)
	if r := warm.ended("1"); !r.Warm || r.Stdout.Text != "a y\n" {
		t.Errorf("warm %v, %q", r.Warm, r.Stdout.Text)
	}
	warm.close()
}

// TestWarmLimitsBeginAtTheRelease: neither the time that an interpreter has
// waited nor what its start has used counts.
func TestWarmLimitsBeginAtTheRelease(t *testing.T) {
	testkit.Requires(t, "python3")
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		c := openWarm(t, who, "python=4", "--max-running", "1", "--timeout", "60s")
		for i, p := range []struct{ code, options, want string }{
			{"while True: pass", `{"timeout":0.5}`, "timeout"},
			{"while True: pass", `{"cpu-time":0.5}`, "cpu_time"},
			{"import time; time.sleep(0.2); print(1)", `{"cpu-time":"50s"}`, "exited"},
			{"x = b'x' * (1 << 30)\nimport time; time.sleep(100)", `{}`, "memory"},
		} {
			id := fmt.Sprint(i)
			c.send(`{"type":"run","id":%q,"code":%q,"lang":"python","options":%s}`, id, p.code, p.options)
			r := c.want("result", id).Result
			if string(r.Outcome) != p.want || !r.Warm {
				t.Errorf("%q %s: %s %d, warm %v, %q", p.code, p.options, r.Outcome, r.ExitCode, r.Warm, r.Error)
			}
			if p.want == "cpu_time" && r.CPUMS < 500 {
				t.Errorf("ended after %d ms of CPU time, the limit is 500", r.CPUMS)
			}
		}
		c.close()
	})
}
