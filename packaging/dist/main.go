// Command dist makes the files of a release: for each architecture a tarball,
// the packages, a list of what the binary is made of, and the checksums of all.
//
//	go run ./packaging/dist [-version V] [-out DIR] [-once] [-arch LIST] [-formats LIST]
//	go run ./packaging/dist -install|-uninstall -prefix DIR [-destdir DIR] [-bin DIR]
//
// The second form puts the same files below a prefix, with binaries that are there
// already, or takes them away again: make install and make uninstall.
//
// Everything is made twice, in two directories and with two caches of the
// compiler, and compared: a release that cannot be made again, byte for byte,
// cannot be checked by anybody else. The one input that is not in the tree is
// the Go toolchain, whose version each list of contents names.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

type options struct {
	version, out     string
	once             bool
	place            place
	arches, packages []string
}

func main() {
	var o options
	arches := flag.String("arch", "amd64,arm64", "`LIST` of architectures")
	packages := flag.String("formats", "deb,rpm,apk", "`LIST` of packages beside the tarball, which may be empty")
	flag.StringVar(&o.version, "version", "", "`V` of a release; by default the tag of this commit, or a development version")
	flag.StringVar(&o.out, "out", "build/dist", "`DIR` for the files, which is replaced")
	flag.BoolVar(&o.once, "once", false, "make them once, and compare nothing")
	install := flag.Bool("install", false, "copy the files below -prefix, and make no packages")
	uninstall := flag.Bool("uninstall", false, "remove what -install has copied")
	flag.StringVar(&o.place.prefix, "prefix", "/usr/local", "`DIR` for -install")
	flag.StringVar(&o.place.destdir, "destdir", "", "`DIR` that stands for / while -install writes")
	flag.StringVar(&o.place.bin, "bin", "bin", "`DIR` with the binaries for -install")
	flag.Parse()
	o.arches, o.packages = words(*arches), words(*packages)
	if flag.NArg() > 0 {
		fail(fmt.Errorf("unexpected argument %q", flag.Arg(0)))
	}
	do := o.run
	if *install {
		do = o.place.install
	} else if *uninstall {
		do = o.place.uninstall
	}
	if err := inTree(do); err != nil {
		fail(err)
	}
}

// inTree calls do with the top of the tree, which this must be started in.
func inTree(do func(root string) error) error {
	// Modes of directories go into the packages.
	syscall.Umask(0o022)
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	if _, err := os.Stat("cmd/sandglass"); err != nil {
		return fmt.Errorf("this is not the top of the tree: %v", err)
	}
	return do(root)
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "dist: error:", err)
	os.Exit(1)
}

func words(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' })
}

func (o options) run(root string) error {
	r, err := decide(root, o.version)
	if err != nil {
		return err
	}
	if err := os.MkdirAll("build", 0o755); err != nil {
		return err
	}
	work, err := os.MkdirTemp(filepath.Join(root, "build"), "dist-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	if r.nfpm, err = nfpm(root, len(o.packages) > 0); err != nil {
		return err
	}
	r.arches, r.packages = o.arches, o.packages
	first := filepath.Join(work, "out")
	if err := r.make(root, filepath.Join(work, "tree"), first, ""); err != nil {
		return err
	}
	if !o.once {
		// A longer path, and a cache with nothing in it.
		again := filepath.Join(work, "once-more")
		if err := r.make(root, filepath.Join(again, "the-same-tree"), filepath.Join(again, "out"), filepath.Join(again, "cache")); err != nil {
			return err
		}
		if err := same(first, filepath.Join(again, "out")); err != nil {
			return err
		}
	}
	if err := os.RemoveAll(o.out); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(o.out), 0o755); err != nil {
		return err
	}
	if err := os.Rename(first, o.out); err != nil {
		return err
	}
	return tell(o, r)
}

// tell prints what there is now.
func tell(o options, r *release) error {
	sums, err := os.ReadFile(filepath.Join(o.out, sumsName))
	if err != nil {
		return err
	}
	how := "made twice, byte for byte the same"
	if o.once {
		how = "made once"
	}
	fmt.Printf("%ssandglass %s in %s, %s\n", sums, r.version, o.out, how)
	return nil
}
