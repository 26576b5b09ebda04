// Package tap is an Ethernet switch in a process. Machines are plugged in by TAP
// devices; every ordered pair of them has a delay and a jitter of its own. It
// stands for tc netem, which not every kernel has.
//
//	device -> reader -> fabric: to whom, and when -> writer of the port -> device
//
// The fabric is pure; readers and writers are goroutines around it.
package tap

import (
	"errors"
	"io"
	"sync"
	"time"
)

const (
	// depth is how many frames may be on their way to one port: more than one TCP
	// connection can have under way (4 MiB, the kernel's usual bound), so that a
	// delay alone loses nothing, and 6 MiB of memory at most.
	depth = 4096

	// frameBytes is above the largest frame that a device of the usual MTU sends.
	frameBytes = 2048

	// idle is how long a writer sleeps at most with nothing to do.
	idle = time.Hour
)

// Switch joins machines. Safe for concurrent use. Close ends it.
type Switch struct {
	running sync.WaitGroup
	over    chan struct{} // closed by Close

	mu      sync.Mutex
	fabric  *fabric
	plugs   []*plug
	problem error // that ended a reader before Close
}

// plug is a machine's device and the goroutines beside it.
type plug struct {
	number int
	device io.ReadWriteCloser
	wake   chan struct{} // holds one if the port's next frame is due earlier than it was
}

// New makes a switch without machines. The seed chooses the delays.
func New(seed uint64) *Switch {
	s := &Switch{over: make(chan struct{})}
	s.fabric = newFabric(seed, depth, func(port int) { s.plugs[port].rouse() })
	return s
}

// rouse has the writer look again.
func (p *plug) rouse() {
	select {
	case p.wake <- struct{}{}:
	default: // it will look anyway
	}
}

// Plug connects a machine and returns the number of its port, from 0 on. The
// switch owns the device from now on. A Read gives one frame, a Write takes one,
// and Close must end a Read that waits.
func (s *Switch) Plug(device io.ReadWriteCloser) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := &plug{number: s.fabric.add(), device: device, wake: make(chan struct{}, 1)}
	s.plugs = append(s.plugs, p)
	s.running.Go(func() { s.read(p) })
	s.running.Go(func() { s.write(p) })
	return p.number
}

// Set gives the link from one port to another a delay, for all that sets out from
// now on. The ports need not be plugged in yet.
func (s *Switch) Set(from, to int, l Link) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fabric.set(from, to, l)
}

// Clear takes the delays of all links away.
func (s *Switch) Clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fabric.clear()
}

// Stats says how many frames there were so far.
func (s *Switch) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fabric.stats
}

// Close unplugs all machines. What was under way is lost; when it returns,
// nothing is written any more. An error says which device failed before. Nothing
// may be plugged in beside it or afterwards.
func (s *Switch) Close() error {
	close(s.over)
	var problems []error
	for _, p := range s.plugs {
		problems = append(problems, p.device.Close())
	}
	s.running.Wait()
	return errors.Join(append(problems, s.problem)...)
}

func (s *Switch) closing() bool {
	select {
	case <-s.over:
		return true
	default:
		return false
	}
}

// read takes in what a machine sends until its device is closed.
func (s *Switch) read(p *plug) {
	buffer := make([]byte, frameBytes)
	for {
		n, err := p.device.Read(buffer)
		s.mu.Lock()
		if err != nil {
			if !s.closing() {
				s.problem = errors.Join(s.problem, err)
			}
			s.mu.Unlock()
			return
		}
		// Under the lock, so that frames of one machine are not due before those
		// that came before them.
		s.fabric.send(time.Now(), p.number, buffer[:n])
		s.mu.Unlock()
	}
}

// write gives a machine each frame when it is due.
func (s *Switch) write(p *plug) {
	timer := time.NewTimer(idle)
	defer timer.Stop()
	for !s.closing() {
		fr, wait := s.take(p)
		if fr != nil {
			_, err := p.device.Write(fr.data)
			s.done(fr, err != nil)
			continue
		}
		timer.Reset(wait)
		select {
		case <-s.over:
		case <-p.wake:
		case <-timer.C:
		}
	}
}

func (s *Switch) take(p *plug) (*frame, time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fabric.take(time.Now(), p.number)
}

func (s *Switch) done(fr *frame, lost bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fabric.done(fr, lost)
}
