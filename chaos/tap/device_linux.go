package tap

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Open makes a TAP device in the network namespace of the calling thread, which
// must be locked. The device is gone when the file is closed; no child inherits
// it. It is down and has no address.
func Open(name string) (*os.File, error) {
	// Non-blocking, so that Close ends a Read that waits.
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("/dev/net/tun: %w", err)
	}
	request, err := unix.NewIfreq(name)
	if err == nil {
		request.SetUint16(unix.IFF_TAP | unix.IFF_NO_PI)
		err = unix.IoctlIfreq(fd, unix.TUNSETIFF, request)
	}
	if err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("TAP device %s: %w", name, err)
	}
	return os.NewFile(uintptr(fd), name), nil // not before: a file without a device cannot be polled
}
