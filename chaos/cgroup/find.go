package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// place is where groups are made: at the top of the hierarchy as it is seen from
// here. Further down, version 2 gives no memory to the children of a group that
// has processes, as ours has.
type place struct {
	top    string
	limits []limit
	events string
}

// limit is a file that a bound is written to.
type limit struct {
	file string
	text func(max int64) string
	may  bool // be absent: kernels without accounting of swap lack it
}

func all(max int64) string { return strconv.FormatInt(max, 10) }
func none(int64) string    { return "0" }

// version1 bounds memory, then memory and swap together: the order matters, as
// the second must never be below the first.
func version1(top string) place {
	return place{top, []limit{{"memory.limit_in_bytes", all, false}, {"memory.memsw.limit_in_bytes", all, true}}, "memory.oom_control"}
}

func version2(top string) place {
	return place{top, []limit{{"memory.max", all, false}, {"memory.swap.max", none, true}}, "memory.events"}
}

// bound writes the limits of a group.
func (p place) bound(dir string, max int64) error {
	for _, l := range p.limits {
		err := write(filepath.Join(dir, l.file), l.text(max))
		if err != nil && !(l.may && errors.Is(err, fs.ErrNotExist)) {
			return fmt.Errorf("%w: %w", ErrUnable, err)
		}
	}
	return nil
}

// write never makes a file: in a cgroup all that can be written is there.
func write(file, text string) error {
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// find looks for the hierarchy that has the memory controller.
func find() (place, error) {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return place{}, err
	}
	return choose(string(mounts))
}

// choose reads /proc/self/mountinfo; see proc_pid_mountinfo(5). A controller is
// in one hierarchy only, so that the first that has it is the one.
func choose(mounts string) (place, error) {
	var problems []error
	for line := range strings.Lines(mounts) {
		head, tail, _ := strings.Cut(line, " - ")
		mount, kind := strings.Fields(head), strings.Fields(tail)
		if len(mount) < 5 || len(kind) < 3 {
			continue
		}
		switch top := mount[4]; kind[0] {
		case "cgroup":
			if slices.Contains(strings.Split(kind[2], ","), "memory") {
				return version1(top), nil
			}
		case "cgroup2":
			err := delegates(top)
			if err == nil {
				return version2(top), nil
			}
			problems = append(problems, err)
		}
	}
	if len(problems) == 0 {
		return place{}, errors.New("no cgroup hierarchy with a memory controller is mounted")
	}
	return place{}, errors.Join(problems...)
}

// delegates says whether children of a group of version 2 can be bounded.
func delegates(top string) error {
	file := filepath.Join(top, "cgroup.subtree_control")
	text, err := os.ReadFile(file)
	if err == nil && !slices.Contains(strings.Fields(string(text)), "memory") {
		err = fmt.Errorf("%s does not list memory", file)
	}
	return err
}
