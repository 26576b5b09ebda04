package peerrpc

import (
	"errors"
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// abandonUnacknowledged breaks the connection when what was sent is not acknowledged
// for so long. By itself Linux tries for a quarter of an hour.
func abandonUnacknowledged(conn *net.TCPConn, after time.Duration) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		failed = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(after.Milliseconds()))
	})
	return errors.Join(err, failed)
}
