// Command again is for tests that failed and are run a second time: which they
// were, and one stream of events in which the second run stands for the first.
// What it reads and writes are files of go test -json.
//
//	again [-most N] [-never REGEXP] list FILE
//	again merge FIRST SECOND
//
// list prints a line for each package: its name, then the tests that failed, with
// tabs between. A package alone is to be run whole: it has no end, or a panic took
// the tests after it along. merge writes FIRST anew.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
)

func main() {
	most := flag.Int("most", 0, "refuse when more than `N` tests failed, or a package as a whole; 0 is no limit")
	never := flag.String("never", "", "refuse when a test of a package that matches `REGEXP` failed")
	flag.Parse()
	var err error
	switch args := flag.Args(); {
	case len(args) == 2 && args[0] == "list":
		err = list(os.Stdout, args[1], *most, *never)
	case len(args) == 3 && args[0] == "merge":
		err = mergeFiles(args[1], args[2])
	default:
		err = fmt.Errorf("usage: again [-most N] [-never REGEXP] list FILE, or again merge FIRST SECOND")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "again:", err)
		os.Exit(1)
	}
}

func list(w io.Writer, file string, most int, never string) error {
	in, err := os.Open(file)
	if err != nil {
		return err
	}
	defer in.Close()
	events, err := read(in)
	if err != nil {
		return err
	}
	failed := failures(events)
	if err := allowed(failed, most, never); err != nil {
		return err
	}
	for _, f := range failed {
		fmt.Fprintln(w, strings.Join(append([]string{f.pkg}, f.tests...), "\t"))
	}
	return nil
}

// allowed says why these failures stand.
func allowed(failed []failure, most int, never string) error {
	refused, err := regexp.Compile(never)
	if err != nil {
		return err
	}
	count := 0
	for _, f := range failed {
		if never != "" && refused.MatchString(f.pkg) {
			return fmt.Errorf("a test of %s that fails once has failed", f.pkg)
		}
		if most > 0 && len(f.tests) == 0 {
			return fmt.Errorf("%s failed as a whole", f.pkg)
		}
		count += len(f.tests)
	}
	if most > 0 && count > most {
		return fmt.Errorf("%d tests failed, which is more than bad luck (%d)", count, most)
	}
	return nil
}

func mergeFiles(first, second string) error {
	a, err := readFile(first)
	if err != nil {
		return err
	}
	b, err := readFile(second)
	if err != nil {
		return err
	}
	whole := first + ".merged"
	if err := os.WriteFile(whole, merge(a, b), 0o644); err != nil {
		return err
	}
	return os.Rename(whole, first)
}

func readFile(path string) ([]event, error) {
	in, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	return read(in)
}
