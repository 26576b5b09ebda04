package report

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"strings"
)

// Machine is what a run ran on.
type Machine struct {
	CPU   string `json:"cpu"`
	Cores int    `json:"cores"`
	Procs int    `json:"gomaxprocs"` // of each process
	OS    string `json:"os"`
	Go    string `json:"go"`
	// Load is the load average of the last minute before the run: over 0 there was
	// other work.
	Load string `json:"load"`
}

// ThisMachine describes where we are. What cannot be read stays empty.
func ThisMachine() Machine {
	m := Machine{Cores: runtime.NumCPU(), Procs: runtime.GOMAXPROCS(0), OS: runtime.GOOS + "/" + runtime.GOARCH, Go: runtime.Version()}
	m.CPU = field("/proc/cpuinfo", "model name\t: ")
	m.Load, _, _ = strings.Cut(field("/proc/loadavg", ""), " ")
	return m
}

// field is what follows on the first line that begins so.
func field(file, prefix string) string {
	f, err := os.Open(file)
	if err != nil {
		return ""
	}
	defer f.Close()
	for in := bufio.NewScanner(f); in.Scan(); {
		if rest, ok := strings.CutPrefix(in.Text(), prefix); ok {
			return strings.TrimSpace(rest)
		}
	}
	return ""
}

// String is one line for people.
func (m Machine) String() string {
	return fmt.Sprintf("%s, %d cores, GOMAXPROCS %d, %s, %s, load %s before", m.CPU, m.Cores, m.Procs, m.OS, m.Go, m.Load)
}
