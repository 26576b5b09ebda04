package floor

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"runtime"
	"sync"
	"testing"
)

// TCP is one bare connection with the batching of peerrpc: callers share frames, two
// of which are unanswered at most, and whoever finds fewer sends the open one. There
// is nothing else: no deadline, no bound, no way to leave before the answer.
func TCP(tb testing.TB, decide Decide) Asker {
	tb.Helper()
	l := listen(tb)
	dialled, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		tb.Fatal(err)
	}
	accepted, err := l.Accept()
	if err != nil {
		tb.Fatal(err)
	}
	c := &caller{conn: dialled, open: new(frame), spare: make(chan *frame, maxUnanswered)}
	var ends sync.WaitGroup
	ends.Go(func() { serve(accepted, decide) })
	ends.Go(c.read)
	tb.Cleanup(func() {
		for _, end := range []io.Closer{dialled, accepted, l} {
			_ = end.Close()
		}
		ends.Wait()
	})
	return c.ask
}

// maxUnanswered is peerrpc's.
const maxUnanswered = 2

// caller is the end that asks.
type caller struct {
	conn    net.Conn
	writing sync.Mutex // held from taking a frame until it is written: answers come in order
	waiters sync.Pool
	spare   chan *frame

	mu         sync.Mutex
	open       *frame
	flying     []*frame
	leading    bool
	unanswered int
}

// frame is questions, each with its length before it, and who waits for their answers.
type frame struct {
	bytes   []byte
	waiters []*waiter
}

type waiter struct {
	answer []byte
	err    error
	done   chan struct{}
}

var errBroken = errors.New("the connection broke")

func (c *caller) ask(buf, question []byte) ([]byte, error) {
	w, ok := c.waiters.Get().(*waiter)
	if !ok {
		w = &waiter{done: make(chan struct{}, 1)}
	}
	c.mu.Lock()
	c.open.bytes = append(binary.AppendUvarint(c.open.bytes, uint64(len(question))), question...)
	c.open.waiters = append(c.open.waiters, w)
	leads := c.claim()
	c.mu.Unlock()
	if leads {
		c.lead()
	}
	<-w.done
	buf, err := append(buf, w.answer...), w.err
	c.waiters.Put(w)
	return buf, err
}

// claim makes the caller the leader, if one is wanted. c.mu is held.
func (c *caller) claim() bool {
	if c.leading || c.unanswered == maxUnanswered || len(c.open.waiters) == 0 {
		return false
	}
	c.leading = true
	return true
}

func (c *caller) lead() {
	runtime.Gosched()
	c.writing.Lock()
	defer c.writing.Unlock()
	f := c.take()
	_ = writeFrame(c.conn, f.bytes) // the reader learns that it is broken
}

func (c *caller) take() *frame {
	next := new(frame)
	select {
	case next = <-c.spare:
	default:
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	f := c.open
	c.leading, c.open = false, next
	c.flying = append(c.flying, f)
	c.unanswered++
	return f
}

// read hands out answers until the connection breaks.
func (c *caller) read() {
	in := bufio.NewReaderSize(c.conn, 64<<10)
	var answers []byte
	for {
		var err error
		if answers, err = readFrame(in, answers); err != nil {
			return
		}
		c.mu.Lock()
		f := c.flying[0]
		c.flying = append(c.flying[:0], c.flying[1:]...)
		c.unanswered--
		c.mu.Unlock()
		f.handOut(answers)
		f.bytes, f.waiters = f.bytes[:0], f.waiters[:0]
		select {
		case c.spare <- f:
		default:
		}
		c.mu.Lock()
		leads := c.claim()
		c.mu.Unlock()
		if leads {
			c.lead()
		}
	}
}

func (f *frame) handOut(answers []byte) {
	for _, w := range f.waiters {
		var answer []byte
		answer, answers = cut(answers)
		w.answer, w.err = append(w.answer[:0], answer...), nil
		if answer == nil {
			w.err = errBroken
		}
		w.done <- struct{}{}
	}
}

// serve is the end that answers: one frame after the other, in one goroutine.
func serve(conn net.Conn, decide Decide) {
	in := bufio.NewReaderSize(conn, 64<<10)
	var questions, answers, answer []byte
	for {
		var err error
		if questions, err = readFrame(in, questions); err != nil {
			return
		}
		answers = answers[:0]
		for rest := questions; len(rest) > 0; {
			var question []byte
			question, rest = cut(rest)
			answer = decide(answer[:0], question)
			answers = append(binary.AppendUvarint(answers, uint64(len(answer))), answer...)
		}
		if writeFrame(conn, answers) != nil {
			return
		}
	}
}

func cut(b []byte) (first, rest []byte) {
	n, size := binary.Uvarint(b)
	if size <= 0 || n > uint64(len(b)-size) {
		return nil, nil
	}
	return b[size:][:n:n], b[size:][n:]
}

func writeFrame(conn net.Conn, frame []byte) error {
	var head [4]byte
	binary.LittleEndian.PutUint32(head[:], uint32(len(frame)))
	parts := net.Buffers{head[:], frame}
	_, err := parts.WriteTo(conn)
	return err
}

func readFrame(in io.Reader, buf []byte) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(in, head[:]); err != nil {
		return nil, err
	}
	n := int(binary.LittleEndian.Uint32(head[:]))
	if cap(buf) < n {
		buf = make([]byte, 0, 2*n)
	}
	_, err := io.ReadFull(in, buf[:n])
	return buf[:n], err
}
