package process

import "syscall"

// attributes keep the terminal's Ctrl-C from the program, which the harness ends
// in its own order, and have the kernel end it should the harness be killed.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
