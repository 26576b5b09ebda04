package tap

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// machine is a device in memory.
type machine struct {
	out    chan []byte // what it sends
	closed chan struct{}
	began  time.Time

	mu  sync.Mutex
	got []string // number and time of all that it got
	bad error    // what Write says
}

func newMachine() *machine {
	return &machine{out: make(chan []byte), closed: make(chan struct{}), began: time.Now()}
}

func (m *machine) Read(b []byte) (int, error) {
	select {
	case frame, ok := <-m.out:
		if !ok {
			return 0, io.ErrUnexpectedEOF
		}
		return copy(b, frame), nil
	case <-m.closed:
		return 0, os.ErrClosed
	}
}

func (m *machine) Write(b []byte) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.bad != nil {
		return 0, m.bad
	}
	m.got = append(m.got, fmt.Sprintf("%d at %v", numberOf(b), time.Since(m.began)))
	return len(b), nil
}

func (m *machine) Close() error {
	close(m.closed)
	return nil
}

func (m *machine) expect(t *testing.T, want ...string) {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	if fmt.Sprint(m.got) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", m.got, want)
	}
}

// plugged is a switch with three machines, all of whom have been heard of.
func plugged(t *testing.T) (*Switch, []*machine) {
	s := New(1)
	all := []*machine{newMachine(), newMachine(), newMachine()}
	for i, m := range all {
		if n := s.Plug(m); n != i {
			t.Errorf("port %d, want %d", n, i)
		}
		m.out <- makeFrame(mac(i), mac(i), noIP, 0) // to itself: nobody gets it
	}
	return s, all
}

func TestSwitch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, all := plugged(t)
		s.Set(0, 2, Link{Delay: time.Second})
		s.Set(1, 2, Link{Delay: 40 * time.Millisecond})
		all[0].out <- makeFrame(mac(2), mac(0), 1, 1)
		all[0].out <- makeFrame(everybody, mac(0), noIP, 2)
		all[1].out <- makeFrame(mac(2), mac(1), datagram, 3) // the writer sleeps for a second by now
		all[2].out <- makeFrame(mac(0), mac(2), datagram, 4)
		time.Sleep(500 * time.Millisecond)
		s.Clear()
		all[0].out <- makeFrame(mac(2), mac(0), 1, 5) // in 1's connection: not before it
		all[0].out <- makeFrame(mac(2), mac(0), datagram, 6)
		time.Sleep(time.Minute)
		all[0].expect(t, "4 at 0s")
		all[1].expect(t, "2 at 0s")
		all[2].expect(t, "3 at 40ms", "6 at 500ms", "1 at 1s", "2 at 1s", "5 at 1s")
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if got, want := s.Stats(), (Stats{In: 9, Out: 7}); got != want {
			t.Errorf("counted %+v, want %+v", got, want)
		}
	})
}

// What is under way when the switch is closed never arrives.
func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, all := plugged(t)
		s.Set(0, 1, Link{Delay: 40 * time.Millisecond})
		all[0].out <- makeFrame(mac(1), mac(0), datagram, 1)
		time.Sleep(39 * time.Millisecond)
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Minute)
		all[1].expect(t)
	})
}

// A machine that refuses frames loses them, and is given those that follow.
func TestRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, all := plugged(t)
		all[1].bad = errors.New("is down")
		all[0].out <- makeFrame(mac(1), mac(0), datagram, 1)
		synctest.Wait()
		all[1].bad = nil
		all[0].out <- makeFrame(mac(1), mac(0), datagram, 2)
		synctest.Wait()
		all[1].expect(t, "2 at 0s")
		if got, want := s.Stats(), (Stats{In: 5, Out: 1, Lost: 1}); got != want {
			t.Errorf("counted %+v, want %+v", got, want)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

// Whoever closes a switch hears of a machine that was cut off without being asked
// for: a run over such a network says nothing.
func TestBrokenDevice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, all := plugged(t)
		close(all[0].out)
		synctest.Wait()
		if err := s.Close(); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("error is %v, want %v", err, io.ErrUnexpectedEOF)
		}
	})
}
