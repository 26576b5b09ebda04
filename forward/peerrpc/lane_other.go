//go:build !linux

package peerrpc

import (
	"net"
	"time"
)

// abandonUnacknowledged cannot be had here: the system's own patience has to do.
func abandonUnacknowledged(*net.TCPConn, time.Duration) error { return nil }
