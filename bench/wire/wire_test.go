package wire

import (
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ringlimit/ringlimit/limit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestRecords(t *testing.T) {
	b := appendRecord(appendRecord(nil, 7, "first"), 8, "")
	for _, want := range []string{"first", ""} {
		name, cost, rest, err := cutRecord(b)
		if string(name) != want || cost != 1 || err != nil {
			t.Errorf("%q, %d, %v; want %q", name, cost, err, want)
		}
		b = rest
	}
	v := limit.Verdict{Allowed: true, Limit: 1 << 40, Remaining: 3, RetryAfter: time.Hour, ResetAfter: 1}
	if got, rest, err := cutAnswer(appendAnswer(nil, &v)); got != v || len(rest) != 0 || err != nil {
		t.Errorf("%+v, %v, %v; want %+v", got, rest, err, v)
	}
}

func FuzzRecord(f *testing.F) {
	f.Add(appendRecord(nil, 7, "name"), false)
	f.Add(appendAnswer(nil, &limit.Verdict{Limit: 5}), true)
	f.Fuzz(func(t *testing.T, b []byte, answer bool) {
		for len(b) > 0 {
			var rest []byte
			var err error
			if answer {
				_, rest, err = cutAnswer(b)
			} else {
				_, _, rest, err = cutRecord(b)
			}
			if err != nil {
				return
			}
			if len(rest) >= len(b) {
				t.Fatal("nothing was cut")
			}
			b = rest
		}
	})
}

// Each of many callers gets the answer for its own name.
func TestTCPAnswersReachWhoAsked(t *testing.T) {
	j, err := NewJudge(1_000_000_000)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error)
	go func() { served <- ServeTCP(l, j) }()
	c, err := DialTCP(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			for n := range 100 {
				if v, err := c.Check(fmt.Sprintf("name-%d-%d", i, n)); err != nil || !v.Allowed || v.Remaining != v.Limit-1 {
					t.Errorf("%d, %d: %+v, %v", i, n, v, err)
					return
				}
			}
		})
	}
	all.Wait()
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if _, err := c.Check("late"); err == nil {
		t.Error("a closed client answers")
	}
	l.Close()
	<-served
}
