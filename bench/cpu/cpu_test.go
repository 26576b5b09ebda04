package cpu

import (
	"os"
	"testing"
	"time"
)

func TestParseStat(t *testing.T) {
	for line, want := range map[string]time.Duration{
		"1 (redis-server) S 1 1 1 0 -1 4194560 10 0 0 0 250 50 7 8 20 0 5 0": 3 * time.Second,
		"1 (a) b) (c) R 1 1 1 0 -1 4194560 10 0 0 0 0 1 7 8 20 0 5 0":        10 * time.Millisecond,
	} {
		if got, err := parseStat([]byte(line)); got != want || err != nil {
			t.Errorf("%s: %v, %v; want %v", line, got, err, want)
		}
	}
	for _, line := range []string{"", "1 (x) S 1", "1 (x) S 1 1 1 0 -1 4194560 10 0 0 0 x 50 7"} {
		if got, err := parseStat([]byte(line)); err == nil {
			t.Errorf("%q: %v, want an error", line, got)
		}
	}
}

// What a process uses is seen by itself and by others.
func TestUsed(t *testing.T) {
	self := Self()
	outside, err := Processes([]int{os.Getpid()})
	if err != nil {
		t.Fatal(err)
	}
	for Self() < self+50*time.Millisecond { // works
	}
	after, err := Process(os.Getpid())
	if d := after - outside; err != nil || d < 30*time.Millisecond || d > time.Second {
		t.Errorf("50 ms are %v outside, %v", d, err)
	}
	if _, err := Processes([]int{os.Getpid(), -1}); err == nil {
		t.Error("a process that does not exist has used something")
	}
}

func TestAllocations(t *testing.T) {
	before := Allocations()
	kept := make([]*[64]byte, 10_000)
	for i := range kept {
		kept[i] = new([64]byte)
	}
	if n := Allocations() - before; n < 9_000 || n > 1_000_000 {
		t.Errorf("10,000 allocations are %d", n)
	}
	if kept[0] == nil {
		t.Error("nothing is kept")
	}
}
