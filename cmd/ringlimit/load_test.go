package main

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
)

// loadAll loads from a command line, an environment and a file's text.
func loadAll(t *testing.T, args []string, env map[string]string, file string) (*settings, error) {
	t.Helper()
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	defaultSettings().bind(flags)
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	name := ""
	if file != "" {
		name = filepath.Join(t.TempDir(), "ringlimit.yaml")
		if err := os.WriteFile(name, []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s, _, err := load(flags, func(v string) (string, bool) { s, ok := env[v]; return s, ok }, name)
	return s, err
}

func TestPrecedence(t *testing.T) {
	const file = "deadline: 20ms\njoin: [localhost:1, localhost:2]\nowner: false\n"
	env := map[string]string{"RINGLIMIT_DEADLINE": "30ms", "RINGLIMIT_JOIN": "localhost:3, localhost:4", "RINGLIMIT_OWNER": "true"}
	args := []string{"--deadline=40ms", "--join=localhost:5", "--join=localhost:6", "--owner=false"}
	for _, tt := range []struct {
		name     string
		args     []string
		env      map[string]string
		file     string
		deadline time.Duration
		join     []string
		owner    bool
	}{
		{"default", nil, nil, "", 50 * time.Millisecond, nil, true},
		{"file over default", nil, nil, file, 20 * time.Millisecond, []string{"localhost:1", "localhost:2"}, false},
		{"environment over file", nil, env, file, 30 * time.Millisecond, []string{"localhost:3", "localhost:4"}, true},
		{"flag over environment", args, env, file, 40 * time.Millisecond, []string{"localhost:5", "localhost:6"}, false},
		{"an empty variable is absent", nil, map[string]string{"RINGLIMIT_DEADLINE": ""}, file, 20 * time.Millisecond, []string{"localhost:1", "localhost:2"}, false},
		{"a flag equal to the default", []string{"--deadline=50ms"}, env, file, 50 * time.Millisecond, []string{"localhost:3", "localhost:4"}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, err := loadAll(t, tt.args, tt.env, tt.file)
			if err != nil {
				t.Fatal(err)
			}
			if s.deadline != tt.deadline || !reflect.DeepEqual(s.join, tt.join) || s.owner != tt.owner {
				t.Errorf("got %v %q %v, want %v %q %v", s.deadline, s.join, s.owner, tt.deadline, tt.join, tt.owner)
			}
		})
	}
}

// Every flag of serve is a variable and a line of the file, read alike.
func TestEverySettingFromEverySource(t *testing.T) {
	values := map[string]string{
		"name": "n", "data-dir": "/d", "http": "localhost:1", "grpc": "localhost:2", "peer": "localhost:3",
		"gossip": "localhost:4", "admin": "localhost:5", "advertise": "localhost", "join": "localhost:6",
		"rules": "/r", "secret-file": "/s", "admin-token-file": "/t", "memory": "3MiB", "deadline": "7ms", "drain-timeout": "9s", "owner": "false", "fallback-capacity": "8",
	}
	want := &settings{
		name: "n", dataDir: "/d", http: "localhost:1", grpc: "localhost:2", peer: "localhost:3",
		gossip: "localhost:4", admin: "localhost:5", advertise: "localhost", join: []string{"localhost:6"},
		rules: "/r", secretFile: "/s", adminTokenFile: "/t", memory: 3 << 20, deadline: 7 * time.Millisecond, drainTimeout: 9 * time.Second, fallbackCapacity: 8,
	}
	var args, lines []string
	env := map[string]string{}
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	defaultSettings().bind(flags)
	flags.VisitAll(func(f *pflag.Flag) {
		value, ok := values[f.Name]
		if !ok {
			t.Fatalf("no value for --%s", f.Name)
		}
		args = append(args, "--"+f.Name+"="+value)
		env[variable(f.Name)] = value
		lines = append(lines, strings.ReplaceAll(f.Name, "-", "_")+": "+value)
	})
	for name, source := range map[string]func() (*settings, error){
		"flags":       func() (*settings, error) { return loadAll(t, args, nil, "") },
		"environment": func() (*settings, error) { return loadAll(t, nil, env, "") },
		"file":        func() (*settings, error) { return loadAll(t, nil, nil, strings.Join(lines, "\n")) },
	} {
		got, err := source()
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, want %+v", name, got, want)
		}
	}
}

// A settings file means the same wherever the node is started.
func TestPathsAreRelativeToTheFile(t *testing.T) {
	s, err := loadAll(t, []string{"--secret-file=s"}, nil, "rules: r.yaml\ndata_dir: ../d\nsecret_file: ignored\n")
	if err != nil {
		t.Fatal(err)
	}
	if !filepath.IsAbs(s.rules) || filepath.Base(s.rules) != "r.yaml" || !filepath.IsAbs(s.dataDir) || s.secretFile != "s" {
		t.Errorf("got rules %q, data-dir %q, secret-file %q", s.rules, s.dataDir, s.secretFile)
	}
}

func TestEmptyFileIsTheDefault(t *testing.T) {
	for _, file := range []string{"\n", "# nothing\n", "---\n"} {
		s, err := loadAll(t, nil, nil, file)
		if err != nil || !reflect.DeepEqual(s, defaultSettings()) {
			t.Errorf("%q: got %+v, %v", file, s, err)
		}
	}
}

func TestLoopback(t *testing.T) {
	for address, want := range map[string]bool{
		"127.0.0.1:1": true, "127.8.9.1:1": true, "[::1]:1": true, "localhost:1": true,
		":1": false, "0.0.0.0:1": false, "[::]:1": false, "10.0.0.1:1": false, "node.example:1": false,
	} {
		if got := loopback(address); got != want {
			t.Errorf("loopback(%q) = %v", address, got)
		}
	}
}

func TestLargeFileIsRefused(t *testing.T) {
	_, err := loadAll(t, nil, nil, "# "+strings.Repeat("x", maxSettings))
	if err == nil || !strings.Contains(err.Error(), "is larger than 65536 bytes") {
		t.Errorf("got %v", err)
	}
}

// FuzzSettings: no text of a file makes the loader panic, and what it accepts
// is valid.
func FuzzSettings(f *testing.F) {
	for _, seed := range []string{
		"", "http: localhost:1", "join: [a:1, b:2]", "identity:\n  key: [ip]\n  trusted_proxies: [10.0.0.0/8]",
		"memory: 1.5GiB", "- a", "a: &x [*x]", "http: a\n---\nhttp: b", "identity: {route: [a b, {c: d}]}", "? [a]\n: b", "<<: {http: x}",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 4<<10 {
			return // the parser is quadratic in the depth
		}
		l := &loader{defaultSettings(), pflag.NewFlagSet("fuzz", pflag.ContinueOnError), origins{}}
		l.settings.bind(l.flags)
		if l.fromYAML("f.yaml", data) == nil && l.settings.validate(l.from) == nil && l.settings.memory <= 0 {
			t.Errorf("accepted memory %d", l.settings.memory)
		}
	})
}
