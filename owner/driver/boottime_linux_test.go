package driver

import (
	"testing"
	"time"
)

func TestSuspendedIsZeroWhileAwake(t *testing.T) {
	slept := suspended()
	for range 1000 {
		if d := slept(); d > time.Millisecond {
			t.Fatalf("slept for %v", d)
		}
	}
}

// machine is a kernel's two clocks.
type machine struct {
	monotonic, boottime int64
	stops               int // readings after which the process is stopped for a second
}

func (m *machine) run(d time.Duration)   { m.monotonic += int64(d); m.boottime += int64(d) }
func (m *machine) sleep(d time.Duration) { m.boottime += int64(d) }

func (m *machine) read(clock *int64) func() int64 {
	return func() int64 {
		m.run(time.Microsecond)
		now := *clock
		if m.stops > 0 {
			m.stops--
			m.run(time.Second)
		}
		return now
	}
}

func TestSuspendedCountsSleepOnce(t *testing.T) {
	m := &machine{monotonic: 5e9, boottime: 7e12} // it has slept before
	slept := gained(m.read(&m.boottime), m.read(&m.monotonic))
	for _, step := range []struct {
		does func(time.Duration)
		d    time.Duration
		want time.Duration
	}{
		{m.run, time.Hour, 0}, {m.sleep, 90 * time.Second, 90 * time.Second}, {m.run, time.Second, 0}, {m.sleep, time.Hour, time.Hour},
	} {
		step.does(step.d)
		if got := slept(); got != step.want {
			t.Errorf("slept for %v, want %v", got, step.want)
		}
	}
}

// A process that is stopped between the readings did not sleep: neither then
// nor, in arrears, at the next call.
func TestSuspendedIsNotStopped(t *testing.T) {
	m := &machine{}
	slept := gained(m.read(&m.boottime), m.read(&m.monotonic))
	for stops := range 10 {
		m.stops = stops
		if d := slept(); d > time.Millisecond {
			t.Errorf("%d stops: slept for %v", stops, d)
		}
	}
}
