package cgroup

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// ours begins the name of every group; the id of the harness's process follows.
const ours = "ringlimit-chaos-"

func prefix(pid int) string { return fmt.Sprint(ours, pid, "-") }

// keeper is the process that removes the groups.
type keeper struct {
	prefix string // of their folders
	cmd    *exec.Cmd
	hold   io.Closer // it waits for the end of this pipe: ours, or this process's
}

// removal waits for the end of its input. Then it removes the folders whose names
// begin with $0. A group cannot be removed while a process is in it; those of a
// harness that crashed take a moment to go.
const removal = `cat >/dev/null
for try in $(seq 100); do
	rmdir "$0"* 2>/dev/null
	set -- "$0"*
	[ -e "$1" ] || exit 0
	sleep 0.05
done
echo "cannot remove $*: there are processes in it" >&2
exit 1`

// keep starts a keeper. Unlike all else that the harness starts, it must outlive
// it: it has a process group of its own, and nobody ends it.
func keep(prefix string) (*keeper, error) {
	k := &keeper{prefix: prefix, cmd: exec.Command("sh", "-c", removal, prefix)}
	k.cmd.Stderr = os.Stderr
	k.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var err error
	if k.hold, err = k.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	return k, k.cmd.Start()
}

// close has the groups removed, and waits for it.
func (k *keeper) close() error {
	k.hold.Close()
	if err := k.cmd.Wait(); err != nil {
		return fmt.Errorf("cgroups are left: see %s*: %w", k.prefix, err)
	}
	return nil
}

// sweep removes the groups of harnesses that are gone, should somebody have
// ended their keepers too. One that has processes stays: the kernel sees to it.
func sweep(top string) {
	all, _ := filepath.Glob(filepath.Join(top, ours+"*")) // the pattern is right
	for _, dir := range all {
		id, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(dir), ours), "-")
		pid, err := strconv.Atoi(id)
		if err == nil && syscall.Kill(pid, 0) == syscall.ESRCH {
			_ = os.Remove(dir)
		}
	}
}
