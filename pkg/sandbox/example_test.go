package sandbox_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"strings"
	"time"

	"sandglass/pkg/sandbox"
)

// A program that uses the package calls sandbox.Init first thing in main; here
// TestMain does. Streams without a writer are captured into the result.
func ExampleRun() {
	spec := sandbox.Default()
	spec.Program.Code = []byte("print(sum(range(10)))")
	spec.Program.Lang = "python"
	res, err := sandbox.Run(context.Background(), spec)
	if err != nil {
		log.Fatal(err) // nothing was run
	}
	fmt.Println(res.Outcome, res.ExitCode)
	fmt.Print(res.Stdout.Text)
	// Output:
	// exited 0
	// 45
}

// What the program does, good or bad, is in the result and never an error.
func ExampleRun_timeLimit() {
	spec := sandbox.Default()
	spec.Program.Command = []string{"sh", "-c", "echo started; while :; do :; done"}
	spec.Limits.Timeout = 3 * time.Second
	res, err := sandbox.Run(context.Background(), spec)
	fmt.Println(err, res.Outcome, res.ExitCode)
	fmt.Print(res.Stdout.Text)
	// Output:
	// <nil> timeout 124
	// started
}

// Streams can be the caller's own; each gets at most Limits.Output bytes.
func ExampleRun_streams() {
	var out bytes.Buffer
	spec := sandbox.Default()
	spec.Program.Command = []string{"tr", "a-z", "A-Z"}
	spec.Spec.Stdin = true
	spec.Stdin, spec.Stdout = strings.NewReader("hello\n"), &out
	res, err := sandbox.Run(context.Background(), spec)
	fmt.Println(err, res.ExitCode, res.Stdout.Bytes)
	fmt.Print(out.String())
	// Output:
	// <nil> 0 6
	// HELLO
}

// What the program leaves in /out is copied when all its processes are dead.
func ExampleRun_artifacts() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	spec := sandbox.Default()
	spec.Program.Command = []string{"sh", "-c", "echo done >/out/report.txt; ln -s /etc/passwd /out/trap"}
	spec.Out = dir
	res, err := sandbox.Run(context.Background(), spec)
	if err != nil {
		log.Fatal(err)
	}
	for _, a := range res.Artifacts {
		fmt.Println(a.Path, a.Type, a.Size, a.Skipped != "")
	}
	text, err := os.ReadFile(dir + "/report.txt")
	fmt.Println(string(text), err)
	// Output:
	// report.txt file 5 false
	// trap symlink 11 true
	// done
	//  <nil>
}

// A refusal says what is wrong and what to do about it. Nothing was run.
func ExampleError() {
	spec := sandbox.Default()
	spec.Program.Command = []string{"true"}
	spec.Limits.Memory = -1
	_, err := sandbox.Run(context.Background(), spec)
	var refused *sandbox.Error
	fmt.Println(errors.As(err, &refused), err)
	// Output:
	// true --memory: -1 is too small: at least 6m
}

// The end of the context is the end of the sandbox.
func ExampleRun_context() {
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	spec := sandbox.Default()
	spec.Program.Command = []string{"sleep", "1000"}
	res, err := sandbox.Run(ctx, spec)
	fmt.Println(err, res.Outcome)
	// Output:
	// <nil> canceled
}
