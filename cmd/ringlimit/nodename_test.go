package main

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestNodeName(t *testing.T) {
	host := func() (string, error) { return "web-1", nil }
	nameless := func() (string, error) { return "", errors.New("no name") }
	for _, tt := range []struct {
		name     string
		s        settings
		hostname func() (string, error)
		want     string
	}{
		{"given", settings{name: "n", dataDir: "/nowhere"}, nameless, "n"},
		{"host and port", settings{gossip: "127.0.0.1:7713"}, host, "web-1-7713"},
		{"no fixed port", settings{gossip: "127.0.0.1:0"}, host, ""},
		{"no host name", settings{gossip: "127.0.0.1:7703"}, nameless, ""},
	} {
		got, err := tt.s.nodeName(nil, tt.hostname)
		if got != tt.want || (err != nil) != (tt.want == "") {
			t.Errorf("%s: got %q, %v, want %q", tt.name, got, err, tt.want)
		}
	}
}

func TestKeptID(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "data")
	first, err := keptID(dir)
	if err != nil || !regexp.MustCompile(`^node-[0-9a-f]{16}$`).MatchString(first) {
		t.Fatalf("got %q, %v", first, err)
	}
	if second, err := keptID(dir); second != first || err != nil {
		t.Errorf("got %q, %v after a restart, want %q", second, err, first)
	}
	if other, _ := keptID(t.TempDir()); other == first {
		t.Errorf("two folders share the id %q", other)
	}
	left, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(left) != 1 {
		t.Errorf("the folder holds %q, want the id alone", left)
	}
}

func TestDamagedID(t *testing.T) {
	for _, content := range []string{"", "node-", "node-0123456789ABCDEF\n", "node-0123456789abcdef\nx", strings.Repeat("x", 100)} {
		dir := t.TempDir()
		file := filepath.Join(dir, idFile)
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if id, err := keptID(dir); err == nil || !strings.Contains(err.Error(), file) {
			t.Errorf("%q: got %q, %v, want an error that names the file", content, id, err)
		}
		if after, err := os.ReadFile(file); err != nil || string(after) != content {
			t.Errorf("%q: the file was changed to %q", content, after)
		}
	}
}

func TestSecret(t *testing.T) {
	file := filepath.Join(t.TempDir(), "secret")
	for _, tt := range []struct {
		name, content, want string
	}{
		{"bare", "0123456789abcdef", "0123456789abcdef"},
		{"line end", "0123456789abcdef\n", "0123456789abcdef"},
		{"line end of Windows", "0123456789abcdef\r\n", "0123456789abcdef"},
		{"one line end only", "0123456789abcdef\n\n", "0123456789abcdef\n"},
		{"short but for the line end", "0123456789abcde\n", ""},
		{"empty", "", ""},
		{"large", strings.Repeat("x", maxSecret+1), ""},
		{"largest", strings.Repeat("x", maxSecret), strings.Repeat("x", maxSecret)},
	} {
		if err := os.WriteFile(file, []byte(tt.content), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := readSecret(file, slog.New(slog.DiscardHandler))
		if (err != nil) != (tt.want == "") || err == nil && string(got) != tt.want {
			t.Errorf("%s: got %q, %v", tt.name, got, err)
		}
	}
}

func TestReadableSecretIsWarnedOf(t *testing.T) {
	for mode, warned := range map[os.FileMode]bool{0o600: false, 0o400: false, 0o640: true, 0o604: true} {
		file := filepath.Join(t.TempDir(), "secret")
		if err := os.WriteFile(file, []byte("0123456789abcdef"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(file, mode); err != nil {
			t.Fatal(err)
		}
		var logs bytes.Buffer
		if _, err := readSecret(file, slog.New(slog.NewTextHandler(&logs, nil))); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(logs.String(), "can be read by others"); got != warned {
			t.Errorf("mode %v: warned %v, want %v", mode, got, warned)
		}
	}
}
