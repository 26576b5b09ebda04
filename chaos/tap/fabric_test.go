package tap

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Kinds of frames that tests send. Those of a TCP connection have its number.
const (
	datagram = -1
	noIP     = -2
)

// mac is the address of the machine at a port.
func mac(port int) address { return address{2, 0, 0, 0, 0, byte(port)} }

var (
	everybody = address{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
	nobody    = mac(99)
)

// makeFrame is a frame that carries a number.
func makeFrame(to, from address, kind int, number uint32) []byte {
	b := make([]byte, headerBytes, 64)
	copy(b, to[:])
	copy(b[6:], from[:])
	if kind != noIP {
		b[etherType], b[etherType+1] = 0x08, 0x00
		ip := make([]byte, ipv4Bytes)
		ip[0], ip[ipv4Protocol] = 0x45, 17
		if kind >= 0 {
			ip[ipv4Protocol] = protocolTCP
		}
		b = append(b, ip...)
		b = binary.BigEndian.AppendUint16(b, uint16(40000+kind))
		b = binary.BigEndian.AppendUint16(b, 7702)
	}
	return binary.BigEndian.AppendUint32(b, number)
}

func numberOf(data []byte) uint32 { return binary.BigEndian.Uint32(data[len(data)-4:]) }

// sent is what the model knows of a frame on its way to one port.
type sent struct {
	number           uint32
	earliest, latest time.Time
	flow             [2]int // sender and TCP connection
}

// model is a fabric as it should be, in a few obvious lines: lists instead of
// heaps, and bounds instead of delays.
type model struct {
	*fabric
	now     time.Time
	known   map[int]bool
	links   map[[2]int]Link
	waiting [][]sent             // by port
	newest  map[[3]int]time.Time // by sender, receiver and connection: when its last frame arrives at the latest
	full    int64
	arrived int64
	number  uint32
}

const ports, shallow = 4, 6

func newModel(seed uint64) *model {
	m := &model{
		fabric: newFabric(seed, shallow, func(int) {}), now: time.Unix(1000, 0), known: map[int]bool{},
		links: map[[2]int]Link{}, waiting: make([][]sent, ports), newest: map[[3]int]time.Time{},
	}
	for range ports {
		m.add()
	}
	return m
}

// goal is to whom a frame goes: to the only one with its address, or to all.
func (m *model) goal(from, to int) []int {
	if to < ports && (m.known[to] || to == from) {
		return []int{to}
	}
	return []int{0, 1, 2, 3}
}

func (m *model) transmit(from, to, kind int) {
	target := map[int]address{ports: everybody, ports + 1: nobody}
	address, group := target[to]
	if !group {
		address = mac(to)
	}
	m.number++
	m.known[from] = true
	for _, g := range m.goal(from, to) {
		switch {
		case g == from:
		case len(m.waiting[g]) == shallow:
			m.full++
		default:
			m.waiting[g] = append(m.waiting[g], m.expect(from, g, kind))
		}
	}
	m.send(m.now, from, makeFrame(address, mac(from), kind, m.number))
}

func (m *model) expect(from, to, kind int) sent {
	l := m.links[[2]int{from, to}]
	s := sent{m.number, m.now.Add(l.Delay - l.Jitter), m.now.Add(l.Delay + l.Jitter), [2]int{from, kind}}
	at := [3]int{from, to, kind}
	if kind >= 0 {
		if m.newest[at].After(s.latest) {
			s.latest = m.newest[at]
		}
		m.newest[at] = s.latest
	}
	return s
}

// receive takes all that is due at a port and compares it with the model.
func (m *model) receive(t *rapid.T, port int) {
	for {
		fr, wait := m.take(m.now, port)
		if fr == nil {
			m.notLate(t, port, wait)
			return
		}
		m.arrive(t, port, fr)
		m.done(fr, false)
	}
}

func (m *model) arrive(t *rapid.T, port int, fr *frame) {
	list := m.waiting[port]
	i := slices.IndexFunc(list, func(s sent) bool { return s.number == numberOf(fr.data) })
	if i < 0 {
		t.Fatalf("port %d got frame %d, which was not for it or came before", port, numberOf(fr.data))
	}
	s := list[i]
	if fr.due.Before(s.earliest) || fr.due.After(s.latest) || fr.due.After(m.now) {
		t.Fatalf("frame %d is due at %v and out at %v; want it from %v to %v", s.number, fr.due, m.now, s.earliest, s.latest)
	}
	if s.flow[1] >= 0 && slices.ContainsFunc(list[:i], func(o sent) bool { return o.flow == s.flow }) {
		t.Fatalf("frame %d overtook one of its TCP connection", s.number)
	}
	m.waiting[port] = slices.Delete(list, i, i+1)
	m.arrived++
}

// notLate fails when something had to arrive by now.
func (m *model) notLate(t *rapid.T, port int, wait time.Duration) {
	if len(m.waiting[port]) == 0 && wait != idle || wait <= 0 {
		t.Fatalf("port %d: wait is %v with %d frames on their way", port, wait, len(m.waiting[port]))
	}
	for _, s := range m.waiting[port] {
		if !s.latest.After(m.now) {
			t.Fatalf("port %d: frame %d had to be out by %v, it is %v", port, s.number, s.latest, m.now)
		}
	}
}

// Every frame arrives once where it should and nowhere else, within its bounds,
// unless a queue is full; TCP keeps its order; nobody hears himself.
func TestLawFabric(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newModel(rapid.Uint64().Draw(t, "seed"))
		port := rapid.IntRange(0, ports-1)
		t.Repeat(map[string]func(*rapid.T){
			"send": func(t *rapid.T) {
				m.transmit(port.Draw(t, "from"), rapid.IntRange(0, ports+1).Draw(t, "to"), rapid.IntRange(noIP, 1).Draw(t, "kind"))
			},
			"set": func(t *rapid.T) {
				from, to := port.Draw(t, "from"), port.Draw(t, "to")
				delay := rapid.IntRange(0, 50).Draw(t, "delay")
				l := Link{Delay: time.Duration(delay) * time.Millisecond, Jitter: time.Duration(rapid.IntRange(0, delay).Draw(t, "jitter")) * time.Millisecond}
				m.links[[2]int{from, to}] = l
				m.set(from, to, l)
			},
			"clear": func(*rapid.T) {
				clear(m.links)
				m.clear()
			},
			"pass": func(t *rapid.T) {
				m.now = m.now.Add(time.Duration(rapid.IntRange(0, 40_000).Draw(t, "µs")) * time.Microsecond)
			},
			"receive": func(t *rapid.T) { m.receive(t, port.Draw(t, "port")) },
		})
		m.now = m.now.Add(time.Minute)
		for p := range ports {
			m.receive(t, p)
		}
		want := Stats{In: int64(m.number), Out: m.arrived, Full: m.full}
		if m.stats != want {
			t.Fatalf("counted %+v, want %+v", m.stats, want)
		}
	})
}

// What is no Ethernet frame goes nowhere.
func TestShortFrame(t *testing.T) {
	f := newFabric(1, 1, func(int) {})
	f.add()
	f.add()
	f.send(time.Unix(1, 0), 0, make([]byte, headerBytes-1))
	if fr, _ := f.take(time.Unix(2, 0), 1); fr != nil {
		t.Errorf("%v came out", fr.data)
	}
}

// Datagrams overtake each other, or gossip would not be tried at all.
func TestDatagramsAreMixedUp(t *testing.T) {
	f := newFabric(1, 100, func(int) {})
	f.add()
	f.add()
	f.set(0, 1, Link{Delay: 20 * time.Millisecond, Jitter: 10 * time.Millisecond})
	now := time.Unix(1, 0)
	for n := range uint32(100) {
		f.send(now, 0, makeFrame(mac(1), mac(0), datagram, n))
		now = now.Add(time.Millisecond)
	}
	var got []uint32
	for fr, _ := f.take(now.Add(time.Second), 1); fr != nil; fr, _ = f.take(now.Add(time.Second), 1) {
		got = append(got, numberOf(fr.data))
	}
	if len(got) != 100 || slices.IsSorted(got) {
		t.Errorf("%d of 100 came, in this order: %v", len(got), got)
	}
}

// The delays are spread as a normal distribution without its tails is.
func TestDraw(t *testing.T) {
	l := Link{Delay: 20 * time.Millisecond, Jitter: 10 * time.Millisecond}
	r := rand.New(rand.NewPCG(1, 1))
	const n = 20_000
	var sum time.Duration
	near := 0
	for range n {
		d := l.draw(r)
		if d < 10*time.Millisecond || d > 30*time.Millisecond {
			t.Fatalf("drew %v", d)
		}
		sum += d
		if (d - l.Delay).Abs() < l.Jitter/2 {
			near++
		}
	}
	// One deviation of two: 0.6827 / 0.9545 of all. Of a uniform one it were half.
	if share := float64(near) / n; share < 0.70 || share > 0.73 {
		t.Errorf("%.3f are within half the jitter, want 0.715", share)
	}
	if mean := sum / n; (mean - l.Delay).Abs() > 100*time.Microsecond {
		t.Errorf("the mean is %v, want %v", mean, l.Delay)
	}
}

// The same seed gives the same delays.
func TestSeed(t *testing.T) {
	due := func(seed uint64) string {
		f := newFabric(seed, 10, func(int) {})
		f.add()
		f.add()
		f.set(0, 1, Link{Delay: time.Second, Jitter: time.Second})
		f.send(time.Unix(1, 0), 0, makeFrame(everybody, mac(0), datagram, 1))
		_, wait := f.take(time.Unix(1, 0), 1)
		return fmt.Sprint(wait)
	}
	first, again, other := due(1), due(1), due(2)
	if first != again || first == other {
		t.Errorf("seed 1 gives %s and %s, seed 2 %s", first, again, other)
	}
}

// forward sends a frame over a slow link and takes out one that is due.
func forward(f *fabric, now time.Time, data []byte) {
	f.send(now, 0, data)
	if fr, _ := f.take(now, 1); fr != nil {
		f.done(fr, false)
	}
}

// busy is a fabric with as many frames under way as a busy link has.
func busy() (f *fabric, now time.Time, data []byte) {
	f = newFabric(1, depth, func(int) {})
	f.add()
	f.add()
	f.set(0, 1, Link{Delay: 20 * time.Millisecond, Jitter: 10 * time.Millisecond})
	data = append(makeFrame(mac(1), mac(0), 1, 0), make([]byte, 1400)...)
	now = time.Unix(1, 0)
	for range 2000 {
		forward(f, now, data)
		now = now.Add(20 * time.Microsecond)
	}
	return f, now, data
}

func TestForwardAllocatesNothing(t *testing.T) {
	f, now, data := busy()
	if n := testing.AllocsPerRun(1000, func() {
		forward(f, now, data)
		now = now.Add(20 * time.Microsecond)
	}); n != 0 {
		t.Errorf("%v allocations a frame", n)
	}
}

// BenchmarkForward reports what a frame costs beside its floor, a queue that
// knows no time: a channel of the same depth.
func BenchmarkForward(b *testing.B) {
	f, now, data := busy()
	plain := make(chan []byte, depth)
	for range 1000 {
		plain <- slices.Clone(data)
	}
	for b.Loop() {
		forward(f, now, data)
		now = now.Add(20 * time.Microsecond)
	}
	ours := b.Elapsed()
	began := time.Now()
	for range b.N {
		spent := <-plain
		plain <- append(spent[:0], data...)
	}
	floor := time.Since(began)
	b.ReportMetric(float64(ours)/float64(max(floor, 1)), "channel/ratio")
}
