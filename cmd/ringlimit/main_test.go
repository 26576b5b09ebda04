package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"go.uber.org/goleak"
)

// TestMain makes this binary the ringlimit command too, so that scripts can run
// real processes and send them signals.
func TestMain(m *testing.M) {
	testscript.Main(noLeaks{m}, map[string]func(){
		"ringlimit": func() { os.Exit(process()) },
	})
}

// noLeaks fails a run that leaves goroutines behind.
type noLeaks struct{ *testing.M }

func (m noLeaks) Run() int {
	code := m.M.Run()
	if err := goleak.Find(); err != nil && code == 0 {
		os.Stderr.WriteString("goroutines are left: " + err.Error() + "\n")
		return 1
	}
	return code
}

func TestScripts(t *testing.T) {
	examples, err := filepath.Abs("../../examples")
	if err != nil {
		t.Fatal(err)
	}
	ports := newPortRange()
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("EXAMPLES", examples)
			env.Values[processes{}] = map[string]*background{}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"ports":      ports.command,
			"exits":      exits,
			"eventually": eventually,
			"start":      start,
			"signal":     signalProcess,
			"finish":     finish,
			"logged":     logged,
			"http":       httpCall,
			"capture":    capture,
		},
	})
}
