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

// Each system call that writes counts, of all processes that are named.
func TestWrites(t *testing.T) {
	before, err := Writes(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for range 100 {
		if _, err := f.WriteString("x"); err != nil {
			t.Fatal(err)
		}
	}
	after, err := Writes(os.Getpid(), os.Getpid())
	if n := after - 2*before; err != nil || n < 200 || n > 300 {
		t.Errorf("100 writes, counted twice, are %d, %v", n, err)
	}
	if n, err := Writes(); n != 0 || err != nil {
		t.Errorf("nobody has written %d times, %v", n, err)
	}
	if _, err := Writes(os.Getpid(), -1); err == nil {
		t.Error("a process that does not exist has written")
	}
	if n, err := parseWrites([]byte("wchar: 1\nsyscr: 3\n")); err == nil {
		t.Errorf("%d writes where none are told", n)
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
