// Command ringlimit runs nodes of a rate-limiting cluster and asks them.
//
//	main.go, root.go     arguments in, exit code out
//	serve.go, dev.go     one node; a whole cluster in one process
//	settings.go …        what a node is told: flags, environment, file, defaults
//	instance.go, stop.go a node with its doors, from the first listener to the last goroutine
//	check.go …           commands that ask a running node, over client.go
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	_ "time/tzdata" // rules name time zones; a small container may have none
)

func main() { os.Exit(process()) }

// process runs the command in this process and returns its exit code. The
// first SIGINT or SIGTERM ends it in order, a second one at once.
func process() int {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	signals := make(chan os.Signal, 2) // room for both, however fast they come
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		cancel()
		<-signals
		os.Exit(exitError)
	}()
	return run(ctx, os.Args[1:], os.LookupEnv, os.Stdout, os.Stderr)
}
