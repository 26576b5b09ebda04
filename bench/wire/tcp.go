package wire

import (
	"bufio"
	"encoding/binary"
	"io"
	"net"
	"runtime"
	"sync"

	"github.com/ringlimit/ringlimit/limit"
)

// maxUnanswered is how many frames may be on their way, as between nodes.
const maxUnanswered = 2

// maxFrame bounds a frame, in bytes of records, as between nodes.
const maxFrame = 16 << 10

// ServeTCP answers frames until the listener is closed.
func ServeTCP(l net.Listener, j *Judge) error {
	for {
		conn, err := l.Accept()
		if err != nil {
			return err
		}
		go func() {
			defer conn.Close()
			_ = serveConn(conn, j) // the client has gone
		}()
	}
}

func serveConn(conn net.Conn, j *Judge) error {
	in := bufio.NewReaderSize(conn, 64<<10)
	var records, out []byte
	for {
		id, frame, err := readFrame(in, records)
		if err != nil {
			return err
		}
		records = frame
		if out, err = j.answer(beginFrame(out, id), records); err != nil {
			return err
		}
		if err := writeFrame(conn, out); err != nil {
			return err
		}
	}
}

const header = 12 // length of what follows, and the frame's number

func beginFrame(b []byte, id uint64) []byte {
	return binary.LittleEndian.AppendUint64(append(b[:0], 0, 0, 0, 0), id)
}

func writeFrame(conn net.Conn, frame []byte) error {
	binary.LittleEndian.PutUint32(frame, uint32(len(frame)-header))
	_, err := conn.Write(frame)
	return err
}

func readFrame(in *bufio.Reader, buf []byte) (id uint64, body []byte, err error) {
	var head [header]byte
	if _, err := io.ReadFull(in, head[:]); err != nil {
		return 0, nil, err
	}
	size := int(binary.LittleEndian.Uint32(head[:]))
	if size > 64*maxFrame {
		return 0, nil, errBad
	}
	if cap(buf) < size {
		buf = make([]byte, size)
	}
	_, err = io.ReadFull(in, buf[:size])
	return binary.LittleEndian.Uint64(head[4:]), buf[:size], err
}

// Client asks over one connection with the batching that ringlimit has between
// nodes: callers add to the open frame; who finds fewer than two frames unanswered
// yields once and sends it; the reader of an answer sends what is left over. It is
// safe for concurrent use.
type Client struct {
	conn    net.Conn
	rule    limit.RuleID
	waiters sync.Pool
	done    chan struct{} // the reader has ended
	sending sync.Mutex    // held while a frame is written: frames must not mix

	mu         sync.Mutex
	open       *frame
	flying     map[uint64]*frame
	packets    [][]byte // to be used again: the writer gives them back, not the reader
	leading    bool
	unanswered int
	lastID     uint64
	broken     error
}

// frame is records and who waits for their answers.
type frame struct {
	packet  []byte
	waiters []*waiter
}

type waiter struct {
	verdict limit.Verdict
	err     error
	done    chan struct{}
}

// DialTCP connects to a server of ServeTCP.
func DialTCP(addr string) (*Client, error) {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	c := &Client{conn: conn, rule: 1, done: make(chan struct{}), flying: map[uint64]*frame{}}
	c.open = c.newFrame()
	c.waiters.New = func() any { return &waiter{done: make(chan struct{}, 1)} }
	go c.read()
	return c, nil
}

// Close ends the connection; who still waits gets an error.
func (c *Client) Close() error {
	err := c.conn.Close()
	<-c.done
	return err
}

// Check asks for one unit of the name.
func (c *Client) Check(name string) (limit.Verdict, error) {
	w := c.waiters.Get().(*waiter)
	c.mu.Lock()
	if c.broken != nil {
		defer c.mu.Unlock()
		return limit.Verdict{}, c.broken
	}
	c.open.packet = appendRecord(c.open.packet, c.rule, name)
	c.open.waiters = append(c.open.waiters, w)
	leads := c.claim()
	c.mu.Unlock()
	if leads {
		c.lead()
	}
	<-w.done
	v, err := w.verdict, w.err
	c.waiters.Put(w)
	return v, err
}

// claim makes the caller the leader, if one is wanted. c.mu is held.
func (c *Client) claim() bool {
	if c.leading || c.unanswered == maxUnanswered || len(c.open.waiters) == 0 || c.broken != nil {
		return false
	}
	c.leading = true
	return true
}

// lead sends the open frame. Without the yield the frames stay small.
func (c *Client) lead() {
	runtime.Gosched()
	c.sending.Lock()
	defer c.sending.Unlock()
	packet := c.take()
	if packet == nil {
		return
	}
	_ = writeFrame(c.conn, packet) // the reader sees an error too, and tells who waits
	c.mu.Lock()
	c.packets = append(c.packets, packet)
	c.mu.Unlock()
}

func (c *Client) take() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.leading = false
	if c.broken != nil {
		return nil
	}
	f := c.open
	c.lastID++
	binary.LittleEndian.PutUint64(f.packet[4:], c.lastID)
	c.flying[c.lastID] = f
	c.unanswered++
	packet := f.packet
	f.packet = nil
	c.open = c.newFrame()
	return packet
}

// newFrame takes over a packet that was sent. c.mu is held.
func (c *Client) newFrame() *frame {
	f := &frame{waiters: make([]*waiter, 0, 64)}
	if n := len(c.packets); n > 0 {
		f.packet, c.packets = c.packets[n-1], c.packets[:n-1]
	}
	f.packet = beginFrame(f.packet, 0)
	return f
}

func (c *Client) read() {
	defer close(c.done)
	in := bufio.NewReaderSize(c.conn, 64<<10)
	var buf []byte
	for {
		id, answers, err := readFrame(in, buf)
		if err == nil {
			buf = answers
			err = c.land(id, answers)
		}
		if err != nil {
			c.fail(err)
			return
		}
	}
}

// land hands out the answers of a frame, and leads if checks are left over.
func (c *Client) land(id uint64, answers []byte) error {
	c.mu.Lock()
	f := c.flying[id]
	delete(c.flying, id)
	c.unanswered--
	c.mu.Unlock()
	if f == nil {
		return errBad
	}
	for i, w := range f.waiters {
		var err error
		if w.verdict, answers, err = cutAnswer(answers); err != nil {
			f.fail(i, err)
			return err
		}
		w.err = nil
		w.done <- struct{}{}
	}
	c.mu.Lock()
	leads := c.claim()
	c.mu.Unlock()
	if leads {
		c.lead()
	}
	return nil
}

// fail tells all who wait.
func (c *Client) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.broken = err
	for _, f := range c.flying {
		f.fail(0, err)
	}
	c.open.fail(0, err)
	clear(c.flying)
}

func (f *frame) fail(from int, err error) {
	for _, w := range f.waiters[from:] {
		w.err = err
		w.done <- struct{}{}
	}
	f.waiters = nil
}
