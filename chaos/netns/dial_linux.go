package netns

import (
	"context"
	"net"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// dial connects from within the namespace: a client beside the node, which no
// cut reaches. A socket belongs to the namespace of the thread that made it.
func (h home) dial(ctx context.Context, network, address string) (conn net.Conn, err error) {
	err = h.inside(func() error {
		conn, err = new(net.Dialer).DialContext(ctx, network, address)
		return err
	})
	return conn, err
}

// inside runs f on a thread that is in the namespace.
func (h home) inside(f func() error) error {
	theirs, err := os.Open(h.path())
	if err != nil {
		return err
	}
	defer theirs.Close()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	ours, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		return err
	}
	defer ours.Close()
	if err := unix.Setns(int(theirs.Fd()), unix.CLONE_NEWNET); err != nil {
		return os.NewSyscallError("setns", err)
	}
	defer func() {
		if err := unix.Setns(int(ours.Fd()), unix.CLONE_NEWNET); err != nil {
			panic("a thread is lost in another network namespace: " + err.Error())
		}
	}()
	return f()
}
