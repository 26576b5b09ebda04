package cgroup

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const mounts = `22 1 8:1 / / rw,relatime - ext4 /dev/root rw
30 22 0:27 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
31 30 0:28 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu
`

func TestChoose(t *testing.T) {
	plain, delegating := unified(t, "cpu pids\n"), unified(t, "cpu memory pids\n")
	for _, tt := range []struct {
		name, mounts string
		want, fault  string // top and file that counts; what is wrong
	}{
		{"none", mounts, "", "no cgroup hierarchy with a memory controller is mounted"},
		{"version 1", mounts + mount1("/memory"), "/memory memory.oom_control", ""},
		{"version 1 beside 2", mounts + mount2(plain) + mount1("/memory"), "/memory memory.oom_control", ""},
		{"version 2", mounts + mount2(delegating), delegating + " memory.events", ""},
		{"version 2, not for children", mounts + mount2(plain), "", plain + "/cgroup.subtree_control does not list memory"},
		{"damaged", "31 30 0:28\n\n - \n- cgroup2", "", "no cgroup hierarchy"},
	} {
		p, err := choose(tt.mounts)
		if got := strings.TrimSpace(p.top + " " + p.events); got != tt.want {
			t.Errorf("%s: found %q, want %q", tt.name, got, tt.want)
		}
		if tt.fault == "" && err != nil || tt.fault != "" && !strings.Contains(fmt.Sprint(err), tt.fault) {
			t.Errorf("%s: error is %v, want %q", tt.name, err, tt.fault)
		}
	}
}

// unified is the top of a hierarchy of version 2.
func unified(t *testing.T, children string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte(children), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

func mount1(top string) string {
	return "34 30 0:31 / " + top + " rw,relatime shared:9 - cgroup cgroup rw,cpuacct,memory\n"
}
func mount2(top string) string { return "40 30 0:37 / " + top + " rw,relatime - cgroup2 cgroup2 rw\n" }

// Swap is bounded where it is accounted for; memory must be bounded.
func TestBound(t *testing.T) {
	for _, tt := range []struct {
		place place
		files string // that are there
		want  string
		fails bool
	}{
		{version1("/"), "memory.limit_in_bytes memory.memsw.limit_in_bytes", "77 77", false},
		{version1("/"), "memory.limit_in_bytes", "77", false},
		{version2("/"), "memory.max memory.swap.max", "77 0", false},
		{version2("/"), "memory.swap.max", "", true},
	} {
		dir := t.TempDir()
		files := strings.Fields(tt.files)
		for _, f := range files {
			if err := os.WriteFile(filepath.Join(dir, f), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := tt.place.bound(dir, 77); tt.fails != errors.Is(err, ErrUnable) || !tt.fails && err != nil {
			t.Errorf("%s: error is %v", tt.files, err)
		}
		var got []string
		for _, f := range files {
			text, _ := os.ReadFile(filepath.Join(dir, f))
			got = append(got, string(text))
		}
		if text := strings.TrimSpace(strings.Join(got, " ")); text != tt.want {
			t.Errorf("%s: %q are written, want %q", tt.files, text, tt.want)
		}
	}
}

func TestKills(t *testing.T) {
	for _, tt := range []struct {
		text string
		want int
	}{
		{"oom_kill_disable 0\nunder_oom 0\noom_kill 3\n", 3},
		{"low 0\nhigh 0\nmax 9\noom 4\noom_kill 2\noom_group_kill 7\n", 2},
		{"oom_kill_disable 0\nunder_oom 0\n", 0}, // before Linux 4.13
	} {
		g := &Group{dir: t.TempDir(), events: "events"}
		if err := os.WriteFile(filepath.Join(g.dir, "events"), []byte(tt.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := g.Kills(); got != tt.want {
			t.Errorf("%q: %d kills, want %d", tt.text, got, tt.want)
		}
	}
}

func TestNothingBounded(t *testing.T) {
	var m *Memory
	g, err := m.Group("x")
	if g != nil || err != nil || g.Through() != nil || g.Kills() != 0 || m.Close() != nil {
		t.Errorf("a group without a bound: %v, %v", g, err)
	}
}

const bound = 32 << 20

func newMemory(t *testing.T) (*Memory, *Group) {
	t.Helper()
	m, err := New(bound)
	if errors.Is(err, ErrUnable) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	g, err := m.Group("node-0")
	if errors.Is(err, ErrUnable) {
		m.Close()
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return m, g
}

// run runs a program in the group.
func (g *Group) run(command ...string) (string, error) {
	command = append(g.Through(), command...)
	out, err := exec.Command(command[0], command[1:]...).Output()
	return string(out), err
}

// A process is in its group from the first instruction, under the id that it was
// started with; one that takes too much ends, and only that is counted. The
// groups go, with what was left by others who are gone.
func TestGroup(t *testing.T) {
	m, g := newMemory(t)
	stale := filepath.Join(m.place.top, prefix(1<<30)+"node-0") // no process has such an id
	if err := os.Mkdir(stale, 0o755); err != nil {
		t.Fatal(err)
	}
	if out, err := g.run("cat", "/proc/self/cgroup"); err != nil || !strings.Contains(out, filepath.Base(g.dir)) {
		t.Errorf("the process is in %q, %v", out, err)
	}
	if n := g.Kills(); n != 0 {
		t.Errorf("%d kills before there was one", n)
	}
	if _, err := g.run("tail", "/dev/zero"); err == nil { // it keeps a line that never ends
		t.Error("a process took all the memory it wanted")
	}
	if n := g.Kills(); n != 1 {
		t.Errorf("%d kills, want 1", n)
	}
	sweep(m.place.top)
	if gone(g.dir) || !gone(stale) {
		t.Errorf("after sweep: ours is gone: %v, a stale one is gone: %v", gone(g.dir), gone(stale))
	}
	if err := m.Close(); err != nil || !gone(g.dir) {
		t.Errorf("Close: %v, and the group is gone: %v", err, gone(g.dir))
	}
}

func gone(dir string) bool {
	_, err := os.Stat(dir)
	return errors.Is(err, os.ErrNotExist)
}
