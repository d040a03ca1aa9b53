package sessionclient_test

import (
	"context"
	"fmt"
	"log"

	"sandglass/pkg/sessionclient"
)

// Many goroutines may use one client. integration/session runs what is here.
func Example() {
	ctx := context.Background()
	c, err := sessionclient.Start(ctx, sessionclient.Options{Args: []string{"--memory", "128m", "--timeout", "5s"}})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	res, err := c.Run(ctx, sessionclient.Request{Lang: "python", Code: "print(6 * 7)"}, nil)
	if err != nil {
		log.Fatal(err) // nothing was run
	}
	fmt.Println(res.Outcome, res.ExitCode, res.Stdout.Text)

	// Output as it comes.
	_, err = c.Run(ctx, sessionclient.Request{Command: []string{"sh", "-c", "echo one; sleep 1; echo two"}},
		func(o sessionclient.Output) { fmt.Printf("%s: %s", o.Stream, o.Data) })
	if err != nil {
		log.Fatal(err)
	}
}
