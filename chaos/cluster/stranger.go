package cluster

import (
	"bytes"
	"context"
	"fmt"
	"os"
)

// Stranger is in what a node differs from the members.
type Stranger struct {
	Secret  bool   // it has another secret, so that it belongs to no cluster of ours
	Binary  string // it is another program; empty: it is not
	Refused bool   // it must be refused, and end by itself
}

// outside says that the node is none of the cluster, whatever it claims.
func (s Stranger) outside() bool { return s.Secret || s.Refused }

// program is what the node runs.
func (n *Node) program() string {
	if n.Binary != "" {
		return n.Binary
	}
	return n.cluster.Binary
}

// AwaitRefused waits until the nodes have ended by themselves, with an exit code
// and a log that says why.
func AwaitRefused(ctx context.Context, why string, nodes ...*Node) error {
	return Await(ctx, func(context.Context) error {
		for _, n := range nodes {
			if err := n.refusal(why); err != nil {
				return err
			}
		}
		return nil
	})
}

func (n *Node) refusal(why string) error {
	if !n.Down() {
		return fmt.Errorf("%s runs on, though it should be refused", n.Name)
	}
	log, err := os.ReadFile(n.Log())
	switch {
	case err != nil:
		return err
	case n.proc.ExitCode() <= 0:
		return fmt.Errorf("%s ended with code %d, as if nothing were wrong", n.Name, n.proc.ExitCode())
	case !bytes.Contains(log, []byte(why)):
		return fmt.Errorf("%s ended without saying %q", n.Name, why)
	}
	return nil
}
