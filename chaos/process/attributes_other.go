//go:build !linux

package process

import "syscall"

// attributes keep the terminal's Ctrl-C from the program, which the harness ends
// in its own order.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
