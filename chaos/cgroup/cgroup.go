// Package cgroup bounds the memory of processes by control groups, of version 1
// or 2. No group outlives the harness, whatever becomes of it: a keeper removes
// them, a process of its own that sees the harness go.
//
//	find.go    where groups can be made, and by what files they are bounded
//	cgroup.go  a group, and how a process gets into it
//	keeper.go  how the groups go
package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// ErrUnable is why there are no memory cgroups here. A scenario that needs them
// is skipped.
var ErrUnable = errors.New("memory cgroups cannot be made here")

// Memory makes groups whose processes get so much memory and no more.
type Memory struct {
	place  place
	max    int64
	keeper *keeper
}

// New finds out where groups can be made, and removes what harnesses that are
// gone may have left there. max is in bytes. Close removes all groups.
func New(max int64) (*Memory, error) {
	p, err := find()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnable, err)
	}
	sweep(p.top)
	k, err := keep(filepath.Join(p.top, prefix(os.Getpid())))
	if err != nil {
		return nil, err
	}
	return &Memory{place: p, max: max, keeper: k}, nil
}

// Group is one cgroup. A nil Group bounds nothing.
type Group struct {
	dir    string
	events string // the file that counts what happened
}

// Group makes a group. Its name must be unique in this process and fit for a
// folder. A nil Memory makes a nil Group.
func (m *Memory) Group(name string) (*Group, error) {
	if m == nil {
		return nil, nil
	}
	g := &Group{dir: m.keeper.prefix + name, events: m.place.events}
	if err := os.Mkdir(g.dir, 0o755); err != nil {
		return nil, fmt.Errorf("%w: %w (are you root?)", ErrUnable, err)
	}
	return g, m.place.bound(g.dir, m.max)
}

// enter runs a command in the group whose cgroup.procs is named first. The shell
// becomes the command, which so is in the group from its first instruction, and
// has the shell's process id.
const enter = `echo $$ >"$0" && exec "$@"`

// Through is the command that runs another one in the group.
func (g *Group) Through() []string {
	if g == nil {
		return nil
	}
	return []string{"sh", "-c", enter, filepath.Join(g.dir, "cgroup.procs")}
}

// Kills is how many processes of the group the kernel has ended because the
// memory was used up. 0 if it does not tell.
func (g *Group) Kills() int {
	if g == nil {
		return 0
	}
	text, err := os.ReadFile(filepath.Join(g.dir, g.events))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if count, ok := strings.CutPrefix(line, "oom_kill "); ok {
			n, _ := strconv.Atoi(strings.TrimSpace(count)) // 0 for what is no number
			return n
		}
	}
	return 0
}

// Close removes all groups, once the processes in them are gone.
func (m *Memory) Close() error {
	if m == nil {
		return nil
	}
	return m.keeper.close()
}
