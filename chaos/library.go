package main

import (
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/ringlimit/ringlimit/chaos/scenario"
)

//go:embed scenarios/*.yaml
var library embed.FS

// names lists the scenarios that come with the command.
func names() []string {
	files, err := fs.Glob(library, "scenarios/*.yaml")
	if err != nil {
		return nil // the pattern is a constant, and right
	}
	var all []string
	for _, f := range files {
		all = append(all, strings.TrimSuffix(path.Base(f), ".yaml"))
	}
	return all
}

// find reads the scenarios that the arguments name: those that come with the
// command, files, or all. nodes is what the caller asks for; 0 for nothing.
func find(args []string, nodes int) ([]*scenario.Scenario, error) {
	if slices.Contains(args, "all") {
		if len(args) > 1 {
			return nil, errors.New("all: stands for every scenario; name no other beside it")
		}
		args = names()
	}
	var found []*scenario.Scenario
	var problems []error
	for _, arg := range args {
		s, err := read(arg)
		if err == nil && nodes > 0 && nodes < s.Needs {
			err = fmt.Errorf("--nodes: %s needs at least %d, not %d", s.Name, s.Needs, nodes)
		}
		if err != nil {
			problems = append(problems, err)
		}
		found = append(found, s)
	}
	return found, errors.Join(problems...)
}

func read(arg string) (*scenario.Scenario, error) {
	if strings.HasSuffix(arg, ".yaml") {
		data, err := os.ReadFile(arg)
		if err != nil {
			return nil, err
		}
		return scenario.Read(arg, data)
	}
	file := "scenarios/" + arg + ".yaml"
	data, err := library.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("%s: no such scenario; there are %s, all, and files that end in .yaml", arg, strings.Join(names(), ", "))
	}
	return scenario.Read("chaos/"+file, data)
}

func list(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, name := range names() {
		s, err := read(name)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "%s\t%s\n", s.Name, s.About)
	}
	return w.Flush()
}
