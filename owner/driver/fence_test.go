package driver

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/ringlimit/ringlimit/limit"
	"github.com/ringlimit/ringlimit/membership"
	"github.com/ringlimit/ringlimit/owner"
)

// standStill is a node that gets no tick and hears nothing for a while. Nobody may
// send to it meanwhile.
func (n *node) standStill(t *testing.T, d time.Duration) {
	n.cancel()
	time.Sleep(d)
	ctx, cancel := contextWithCancel(t)
	done := make(chan struct{})
	go func() {
		defer close(done)
		n.Run(ctx)
	}()
	n.cancel = func() {
		cancel()
		<-done
	}
}

// A lone node that stood still finds nobody to wait for, and begins again in the
// same event. It was fenced all the same.
func TestLonePauseIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMesh(t)
		defer m.stop()
		a := m.join("a")
		time.Sleep(time.Second)
		a.standStill(t, 5*time.Second)
		time.Sleep(time.Second)
		synctest.Wait()
		if a.seen.stopped != 1 || !a.Serving() || a.Era() != 1 {
			t.Errorf("stopped %d times; serves: %v, in era %d", a.seen.stopped, a.Serving(), a.Era())
		}
	})
}

// A check that waits is woken by the very event that opens the fence, and decided.
func TestCheckWokenByTheFenceThatOpens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMesh(t)
		defer m.stop()
		a := m.join("a")
		m.join("b")
		time.Sleep(time.Second)
		m.mute("b", true)
		a.Members(membership.NewView([]membership.Member{a.cfg.Self})) // it still waits a while for b's answer
		r, i := rule(t, limit.DurabilityAuto, 3), 0
		for a.core.Phase(call(r, a.partition, i).Partition) != owner.Acquiring {
			i++
		}
		answer := make(chan error)
		go func() {
			_, err := m.take(a, r, i, 10*time.Second)
			answer <- err
		}()
		synctest.Wait()
		a.standStill(t, 5*time.Second)
		if err := <-answer; err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if a.seen.stopped != 1 {
			t.Errorf("stopped %d times", a.seen.stopped)
		}
	})
}
