// Package floor is what a check is measured against: the least that it costs to carry
// a question to another process and its answer back. Both ends are in this process
// and talk over loopback, as two nodes on one machine would.
package floor

import (
	"net"
	"testing"
)

// Decide appends the answer to a question.
type Decide func(answer, question []byte) []byte

// Asker appends to buf the answer of the other end. It is safe for concurrent use.
type Asker func(buf, question []byte) (answer []byte, err error)

func listen(tb testing.TB) net.Listener {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	return l
}
