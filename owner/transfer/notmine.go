package transfer

import (
	"fmt"

	"github.com/ringlimit/ringlimit/membership"
	"github.com/ringlimit/ringlimit/owner"
)

// NotMine is the answer of a node that does not hold the counter. The check was
// not counted.
type NotMine struct {
	Hint membership.NodeID // who may hold the counter, as the answerer sees it; empty when it knows of nobody
	Ring uint64            // the fingerprint of the answerer's ring
}

// Is makes a NotMine an owner.ErrNotHolder, of another node.
func (e *NotMine) Is(target error) bool { return target == owner.ErrNotHolder }

func (e *NotMine) Error() string {
	return fmt.Sprintf("the node asked does not hold the counter; as it sees it, with ring %016x, %q does", e.Ring, e.Hint)
}
