package tap

import (
	"container/heap"
	"math/rand/v2"
	"time"
)

// fabric decides where frames go, and when. It reads no clock and starts nothing:
// a seed and a list of frames give the same result every time.
type fabric struct {
	rand  *rand.Rand
	depth int            // frames that may be on their way to one port
	ahead func(port int) // is told when a port's next frame is due earlier than it was
	ports []port
	paths map[[2]int]*path // by sender and receiver; none: a wire
	spare []*frame
	turns uint64
	stats Stats
}

// Stats counts frames. What came in at one port goes out at none, one or several.
type Stats struct {
	In   int64 // from machines
	Out  int64 // to machines
	Full int64 // lost, because too many were on their way to a port
	Lost int64 // lost, because the machine's device refused them, as one does that is down
}

// port is where a machine is plugged in. Behind each is only one, so that the
// address it used last is all there is to learn.
type port struct {
	address address
	known   bool
	out     queue
}

// address is an Ethernet address.
type address [6]byte

// group says whether an address means several machines (IEEE 802, 8.2.2).
func (a address) group() bool { return a[0]&1 != 0 }

func newFabric(seed uint64, depth int, ahead func(port int)) *fabric {
	return &fabric{rand: rand.New(rand.NewPCG(seed, 3)), depth: depth, ahead: ahead, paths: map[[2]int]*path{}}
}

// add makes a port and returns its number.
func (f *fabric) add() int {
	f.ports = append(f.ports, port{})
	return len(f.ports) - 1
}

// set changes a link for what sets out from now on. What is under way arrives
// when it would have, and what follows it in its connection not before it.
func (f *fabric) set(from, to int, l Link) {
	at := [2]int{from, to}
	if f.paths[at] == nil {
		f.paths[at] = &path{}
	}
	f.paths[at].Link = l
}

// clear makes all links wires.
func (f *fabric) clear() {
	for _, p := range f.paths {
		p.Link = Link{}
	}
}

// send takes in a frame. It keeps a copy of data.
func (f *fabric) send(now time.Time, from int, data []byte) {
	f.stats.In++
	if len(data) < headerBytes {
		return // not Ethernet: it names nobody
	}
	f.ports[from].address, f.ports[from].known = address(data[6:12]), true
	to, found := f.find(address(data[:6]))
	for i := range f.ports {
		if i != from && (i == to || !found) {
			f.enqueue(now, from, i, data)
		}
	}
}

// find is the port of an address. What is for a group, or for one who was never
// heard, has none, and goes to all.
func (f *fabric) find(a address) (port int, ok bool) {
	for i := range f.ports {
		if p := &f.ports[i]; p.known && p.address == a && !a.group() {
			return i, true
		}
	}
	return 0, false
}

func (f *fabric) enqueue(now time.Time, from, to int, data []byte) {
	out := &f.ports[to].out
	if len(*out) >= f.depth {
		f.stats.Full++
		return
	}
	due := now
	if p := f.paths[[2]int{from, to}]; p != nil {
		due = p.due(now, data, f.rand)
	}
	fr := f.blank()
	fr.due, fr.turn, fr.data = due, f.turns, append(fr.data[:0], data...)
	f.turns++
	heap.Push(out, fr)
	if (*out)[0] == fr {
		f.ahead(to)
	}
}

func (f *fabric) blank() *frame {
	last := len(f.spare) - 1
	if last < 0 {
		return &frame{}
	}
	fr := f.spare[last]
	f.spare = f.spare[:last]
	return fr
}

// take gives out the next frame that is due at a port, or nil and how long it is
// until then: idle, if there is none.
func (f *fabric) take(now time.Time, to int) (*frame, time.Duration) {
	out := &f.ports[to].out
	if len(*out) == 0 {
		return nil, idle
	}
	if wait := (*out)[0].due.Sub(now); wait > 0 {
		return nil, wait
	}
	return heap.Pop(out).(*frame), 0
}

// done takes a frame back to be used again; lost says that it did not arrive.
func (f *fabric) done(fr *frame, lost bool) {
	if lost {
		f.stats.Lost++
	} else {
		f.stats.Out++
	}
	f.spare = append(f.spare, fr)
}
