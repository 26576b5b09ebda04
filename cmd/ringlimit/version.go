package main

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// build says what this binary was made of.
type build struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"` // of git; with -dirty when there were changes
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func readBuild() build {
	b := build{Version: "unknown", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if info.Main.Version != "" {
		b.Version = info.Main.Version
	}
	dirty := ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			b.Revision = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = "-dirty"
		}
	}
	if b.Revision != "" {
		b.Revision += dirty
	}
	return b
}

func (c *command) version() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Say which version this is",
		Args:  exactly(0),
		RunE: func(*cobra.Command, []string) error {
			b := readBuild()
			return c.out.print(b, b.text)
		},
	}
}

func (b build) text(w io.Writer) {
	fmt.Fprintf(w, "ringlimit %s %s %s", b.Version, b.Go, b.Platform)
	if b.Revision != "" {
		fmt.Fprintf(w, " (%s)", b.Revision)
	}
	fmt.Fprintln(w)
}
