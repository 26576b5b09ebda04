package profile

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// The profiles of a process that waits for a lock say so, each round has files of its
// own, and the time asked for is whole seconds.
func TestTake(t *testing.T) {
	addr, err := Serve()
	if err != nil {
		t.Fatal(err)
	}
	dir, over := filepath.Join(t.TempDir(), "new", "folder"), make(chan struct{})
	var work sync.WaitGroup
	var mu sync.Mutex
	for range 4 {
		work.Go(func() { quarrel(&mu, over) })
	}
	began := time.Now()
	err = Take(t.Context(), dir, 2, 300*time.Millisecond, []Source{{"self", addr, Kinds()}})
	took := time.Since(began)
	close(over)
	work.Wait()
	if err != nil || took < time.Second {
		t.Fatalf("after %v: %v", took, err)
	}
	for kind, want := range map[string]string{"cpu": "nanoseconds", "mutex": "contentions", "block": "quarrel"} {
		if got := unzip(t, filepath.Join(dir, "self."+kind+".2.pb.gz")); !strings.Contains(got, want) {
			t.Errorf("the profile %s does not tell of %q: %q", kind, want, got)
		}
	}
}

// quarrel holds the lock most of the time.
func quarrel(mu *sync.Mutex, over <-chan struct{}) {
	for {
		mu.Lock()
		select {
		case <-over:
			mu.Unlock()
			return
		case <-time.After(time.Millisecond):
		}
		mu.Unlock()
	}
}

func unzip(t *testing.T, file string) string {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	in, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(in)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// A server that has no such profile, or none at all, is an error.
func TestTakeFails(t *testing.T) {
	none := httptest.NewServer(http.NotFoundHandler())
	defer none.Close()
	addr := strings.TrimPrefix(none.URL, "http://")
	if err := Take(t.Context(), t.TempDir(), 0, time.Second, []Source{{"x", addr, []string{CPU}}}); err == nil || !strings.Contains(err.Error(), "404") {
		t.Errorf("%v", err)
	}
	none.Close()
	if err := Take(t.Context(), t.TempDir(), 0, time.Second, []Source{{"x", addr, []string{CPU}}}); err == nil {
		t.Error("nobody was asked")
	}
}
