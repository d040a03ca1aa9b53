package egress

import (
	"crypto/tls"
	"slices"
	"testing"

	"sandglass/internal/testkit"
	"sandglass/pkg/result"
)

// hellos runs cases of testdata/sni.py.
func (w *world) hellos(t *testing.T, who testkit.Who, flags []string, tries ...try) testkit.Output {
	t.Helper()
	var args []string
	want := ""
	for _, x := range tries {
		args = append(args, x.what)
		want += x.what + " -> " + x.want + "\n"
	}
	o := w.python(t, who, "sni.py", flags, args...)
	printed(t, o, want)
	return o
}

// TestServerName: a TLS hello has the name of the list, or nobody is dialled.
func TestServerName(t *testing.T) {
	each(t, func(t *testing.T, w *world, who testkit.Who) {
		o := w.hellos(t, who, allow("v4.good.example"), all("data", "right", "case", "fragments", "bytes")...)
		for _, c := range o.Result.Network.Connections {
			if c.Address != good4 || c.Verdict != result.Closed && c.Verdict != result.Reset { // by TLS libraries, as they like
				t.Errorf("connection %+v", c)
			}
		}
		w.wire.arrived(t)
		o = w.hellos(t, who, allow("v4.good.example"), all("ECONNRESET",
			"other", "shared", "parent", "longer", "none", "fragments of another", "http", "ssh", "random", "cut short")...)
		connections(t, o, "v4.good.example:443  server_name")
		w.wire.only(t) // not dialled
	})
}

// TestServerNameByPort: which ports are looked at is the caller's choice.
func TestServerNameByPort(t *testing.T) {
	each(t, func(t *testing.T, w *world, who testkit.Who) {
		both := allow("v4.good.example", "v4.good.example:8443")
		l := tls.NewListener(w.listen(good4+":8443"), w.ca.server())
		defer l.Close()
		go serveHello(l)
		w.hellos(t, who, both, try{"other 8443", "data"})
		w.hellos(t, who, append(both, "--tls-sni-check", "all"), all("ECONNRESET", "other 8443", "http 8443", "other")...)
		w.hellos(t, who, append(both, "--tls-sni-check", "off"), slices.Concat(all("data", "other 8443", "none"))...)
	})
}

// TestFronting is what the check does not stop, and what the pages say so: the
// name of the request inside of TLS is not seen.
func TestFronting(t *testing.T) {
	each(t, func(t *testing.T, w *world, who testkit.Who) {
		testkit.Requires(t, "curl")
		o := testkit.Run(t, testkit.Opts{Who: who}, slices.Concat(allow("good.example"), w.ca.flags(),
			[]string{"--", "curl", "-sS", "-H", "Host: other.example", "https://good.example/"})...)
		printed(t, o, "hello from other.example\n")
	})
}

// TestRedirects lead to listed hosts only.
func TestRedirects(t *testing.T) {
	each(t, func(t *testing.T, w *world, who testkit.Who) {
		testkit.Requires(t, "curl")
		for _, to := range []struct {
			url  string
			exit int // curl's
		}{
			{"https://other.example/", 6},
			{"http://" + private4 + "/", 7},
			{"http://" + metadata + "/latest/meta-data/", 7},
			{"http://127.0.0.1/", 7},
			{"http://[" + ula6 + "]/", 7},
			{"https://good.example:8443/", 7},
			{"http://2130706433/", 7}, // 127.0.0.1
		} {
			o := testkit.Run(t, testkit.Opts{Who: who}, slices.Concat(allow("good.example"), w.ca.flags(),
				[]string{"--", "curl", "-sSL", "https://good.example/to?u=" + to.url})...)
			if o.Exit != to.exit || o.Stdout != "" {
				t.Errorf("%s: exit %d, want %d, stdout %q, stderr %q", to.url, o.Exit, to.exit, o.Stdout, o.Stderr)
			}
		}
		w.wire.only(t, "tcp ["+good6+"]:443")
	})
}
