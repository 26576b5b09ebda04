package main

import (
	"errors"
	"testing"

	"github.com/ringlimit/ringlimit"
)

// What the node itself finds wrong is told by where it was set, each for itself.
func TestRefusedConfigIsPlaced(t *testing.T) {
	from := origins{"name": "f.yaml:1:7: name", "secret-file": "RINGLIMIT_SECRET_FILE"}
	wrong := func(field string) error { return &ringlimit.ConfigError{Field: field, Err: errors.New("is wrong")} }
	for _, tt := range []struct {
		err  error
		want string
	}{
		{wrong("name"), "f.yaml:1:7: name: is wrong"},
		{wrong("secret"), "RINGLIMIT_SECRET_FILE: is wrong"},
		{wrong("memory"), "--memory: is wrong"},
		{errors.Join(wrong("name"), nil, errors.Join(wrong("peer"), errors.New("no disk"))), "f.yaml:1:7: name: is wrong\n--peer: is wrong\nno disk"},
		{errors.New("no disk"), "no disk"},
	} {
		if got := from.started(tt.err); got.Error() != tt.want {
			t.Errorf("%v: got %v, want %s", tt.err, got, tt.want)
		}
	}
}
