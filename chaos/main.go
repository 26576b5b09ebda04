// Command chaos kills nodes for a living, and measures what ringlimit promises.
// It runs scenarios against real processes and judges them by arithmetic: what
// every key was admitted, against what its limit allows.
//
//	go run ./chaos                 list the scenarios
//	go run ./chaos join kill       run two of them
//	go run ./chaos all             run all
//	go run ./chaos my.yaml         run a file of one's own
//
// The exit code is 0 if every bound held, 1 if one was broken, 2 for bad input
// or a run that could not be carried out.
//
//	main.go, command.go   arguments in, exit code out
//	library.go            the scenarios that come with it: scenarios/*.yaml
//	run.go                one scenario after the other
//	progress.go           what is shown meanwhile
//	table.go              what is shown at the end
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() { os.Exit(process()) }

// process runs the command. The first SIGINT or SIGTERM ends the run in order:
// every node is killed and waited for.
func process() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	return run(ctx, os.Args[1:], os.Stdout, os.Stderr)
}
