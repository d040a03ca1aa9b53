package pool_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"sandglass/pkg/policy"
	"sandglass/pkg/pool"
	"sandglass/pkg/sandbox"
)

// The policy of a run is that of the pool, or it has a sandbox of its own.
func ExampleNew() {
	spec := sandbox.Default()
	spec.Limits.Memory = 64 << 20
	p, err := pool.New(context.Background(), pool.Config{
		Spec: spec, Sizes: []policy.Warm{{N: 1}, {Lang: "python", N: 1}}, MaxAge: 10 * time.Minute,
	})
	if err != nil {
		log.Fatal(err) // none can be made; a *sandbox.Error has hints
	}
	defer p.Close()
	<-p.Full() // or run at once, and cold while none is there
	spec.Program.Command = []string{"echo", "hello"}
	res, err := p.Run(context.Background(), spec)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(res.Warm, res.ExitCode)
	fmt.Print(res.Stdout.Text)
	// Output:
	// true 0
	// hello
}
