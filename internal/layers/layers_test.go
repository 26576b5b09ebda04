package layers

import (
	"go/token"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

func TestLayers(t *testing.T) {
	problems := check(t, os.DirFS("../.."))
	for _, p := range problems {
		t.Error(p)
	}
}

// check judges the module whose top is fsys.
func check(t *testing.T, fsys fs.FS) []string {
	t.Helper()
	set := token.NewFileSet()
	sources, err := readSources(fsys, set)
	if err != nil {
		t.Fatal(err)
	}
	var bad []string
	folders := map[string][]source{}
	for _, s := range sources {
		bad = append(bad, badImports(s)...)
		bad = append(bad, badEnvironment(set, s)...)
		folders[s.folder] = append(folders[s.folder], s)
	}
	for _, folder := range folders {
		bad = append(bad, badState(set, folder)...)
	}
	slices.Sort(bad)
	return bad
}

// TestTableHasNoDeadLines keeps the table from naming what is gone.
func TestTableHasNoDeadLines(t *testing.T) {
	for folder, l := range testImports {
		for _, imported := range l.imports {
			if _, ok := layers[folder]; !ok || covers(layers[folder].imports, imported) {
				t.Errorf("the tests' line of %s, %s says nothing", folder, imported)
			}
		}
	}
	for folder, l := range layers {
		if _, err := os.Stat("../../" + folder); err != nil {
			t.Errorf("the table names %s: %v", folder, err)
		}
		for _, below := range l.imports {
			if _, ok := layers[strings.TrimSuffix(below, "/...")]; !ok {
				t.Errorf("%s may import %s, which is not in the table", folder, below)
			}
		}
	}
}

// The offenders: each line of the rules has to be able to fail.
func TestOffenders(t *testing.T) {
	const us = `import _ "github.com/ringlimit/ringlimit`
	for _, tt := range []struct {
		name, file, text string
		want             string // part of the one problem; empty: none
	}{
		{"upwards", "limit/a.go", us + `/rules"`, "rules is no layer below limit: the nouns"},
		{"sideways", "front/httpfront/a.go", us + `/owner"`, "owner is no layer below front/httpfront: doors"},
		{"root from below", "forward/a.go", us + `"`, ". is no layer below forward"},
		{"a test upwards", "ring/a_test.go", us + `/forward"`, "forward is no layer below ring"},
		{"an external test of its own package", "ring/a_test.go", us + `/ring"`, ""},
		{"a ring in a test", "forward/peerrpc/a_test.go", us + `/ring"`, ""},
		{"a ring in code", "forward/peerrpc/a.go", us + `/ring"`, "ring is no layer below forward/peerrpc: carries"},
		{"a ring in another test", "owner/a_test.go", us + `/ring"`, "ring is no layer below owner"},
		{"downwards", "forward/peerrpc/a.go", us + `/owner"`, ""},
		{"below a pattern", "node.go", us + `/membership/gossip"`, ""},
		{"a folder nobody placed", "misc/a.go", "", "folder misc is not in the table"},
		{"memberlist elsewhere", "forward/a.go", `import _ "github.com/hashicorp/memberlist"`, "only membership/gossip, membership/gossip/memnet may"},
		{"a package of grpc", "node.go", `import _ "google.golang.org/grpc/codes"`, "may: policy and doors stay testable"},
		{"another module with the same beginning", "forward/peerrpc/a.go", `import _ "google.golang.org/grpcx"`, "not in the table; add it"},
		{"unknown dependency", "ring/a.go", `import _ "example.com/x"`, "not in the table; add it"},
		{"dependency of a leaf", "limit/a.go", `import _ "github.com/cespare/xxhash/v2"`, "only the standard library"},
		{"test library in code", "ring/a.go", `import _ "pgregory.net/rapid"`, "not in the table; add it"},
		{"a dependency of others in a test", "ring/a_test.go", `import _ "github.com/zeebo/xxh3"`, ""},
		{"unknown dependency in a test", "ring/a_test.go", `import _ "example.com/x"`, "not in the table; add it"},
		{"test package in code", "node.go", us + `/membership/gossip/memnet"`, "it is for tests"},
		{"test package in a test", "node_test.go", us + `/membership/gossip/memnet"`, ""},
		{"test library in a test", "limit/a_test.go", `import _ "pgregory.net/rapid"`, ""},
		{"standard library", "limit/a.go", `import _ "encoding/json"`, ""},

		{"environment", "rules/a.go", `import "os"; var v = os.Getenv("X")`, "rules/a.go:2:22: only cmd reads"},
		{"environment, looked up", "rules/a.go", `import "os"; func f() { os.LookupEnv("X") }`, "only cmd reads"},
		{"environment in cmd", "cmd/ringlimit/a.go", `import "os"; func f() { os.Getenv("X") }`, ""},
		{"environment in a test", "rules/a_test.go", `import "os"; func f() { os.Getenv("X") }`, ""},

		{"assigned", "rules/a.go", "var n = 1; func f() { n = 2 }", "variable n is written to"},
		{"counted", "rules/a.go", "var n = 1; func f() { n++ }", "variable n is written to"},
		{"element", "rules/a.go", "var m = map[int]int{}; func f() { m[1] = 2 }", "variable m is written to"},
		{"field", "rules/a.go", "var s struct{ n int }; func f() { (s.n) += 2 }", "variable s is written to"},
		{"address", "rules/a.go", "var n = 1; func f() *int { return &n }", "variable n is written to"},
		{"made", "rules/a.go", "var m = make(map[int]int)", "variable m is made to change"},
		{"channel", "rules/a.go", "var c chan int", "variable c is made to change"},
		{"lock", "rules/a.go", `import "sync"; var mu sync.Mutex`, "variable mu is made to change"},
		{"atomic", "rules/a.go", `import "sync/atomic"; var n atomic.Pointer[int]`, "variable n is made to change"},
		{"init", "rules/a.go", "func init() {}", "init changes the package"},
		{"constant table", "rules/a.go", `var names = [...]string{"a"}; func f() string { return names[0] }`, ""},
		{"shadowed", "rules/a.go", "var n = 1; func f() int { n := 2; n = 3; return n }", ""},
		{"sentinel", "rules/a.go", `import "errors"; var ErrX = errors.New("x")`, ""},
		{"pool", "rules/a.go", `import "sync"; var p = sync.Pool{New: func() any { return nil }}; func f() { p.Get() }`, ""},
		{"a method named init", "rules/a.go", "type t int; func (t) init() {}", ""},
		{"state in a test", "rules/a_test.go", "var n = 1; func f() { n = 2 }", ""},
		{"generated", "forward/peerrpc/a.pb.go", "func init() {}", ""},
		{"another module", "limit/sub/a.go", us + `/rules"`, ""},
		{"testdata", "limit/testdata/a.go", us + `/rules"`, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			text := "package p\n" + tt.text + "\n"
			if strings.HasSuffix(tt.file, ".pb.go") {
				text = "// Code generated by protoc. DO NOT EDIT.\n" + text
			}
			got := check(t, fstest.MapFS{
				tt.file:            {Data: []byte(text)},
				"limit/sub/go.mod": {Data: []byte("module sub\n")},
			})
			switch {
			case tt.want == "" && len(got) > 0:
				t.Errorf("got %q, want no problem", got)
			case tt.want != "" && (len(got) != 1 || !strings.Contains(got[0], tt.want)):
				t.Errorf("got %q, want one problem that says %q", got, tt.want)
			}
		})
	}
}

// Two files of one package are judged together.
func TestStateAcrossFiles(t *testing.T) {
	got := check(t, fstest.MapFS{
		"rules/a.go": {Data: []byte("package p\nvar n = 1\n")},
		"rules/b.go": {Data: []byte("package p\nfunc f() { n = 2 }\n")},
	})
	if len(got) != 1 || !strings.HasPrefix(got[0], "rules/b.go:2:12: the package's variable n is written to") {
		t.Errorf("got %q", got)
	}
}
