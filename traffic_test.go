package ringlimit

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"sync/atomic"
	"testing"
)

// traffic counts what the nodes that dial by it send each other.
type traffic struct {
	frames atomic.Int64 // of checks; their answers are not counted
	bytes  atomic.Int64 // both ways, on all streams
}

func (t *traffic) dial(ctx context.Context, address string) (net.Conn, error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	return &countedConn{TCPConn: c.(*net.TCPConn), all: t, skip: prefaceSize}, nil
}

// countedConn is the dialling end of an HTTP/2 connection (RFC 9113, section 4.1).
// gRPC writes it from one goroutine and reads it from another.
type countedConn struct {
	*net.TCPConn
	all  *traffic
	skip int    // bytes that belong to no frame's head
	head []byte // of the next frame, as far as it has come
}

const (
	prefaceSize = 24
	headSize    = 9
	dataFrame   = 0
	firstStream = 1 // the stream of checks is opened before those of mail
)

func (c *countedConn) Read(b []byte) (int, error) {
	n, err := c.TCPConn.Read(b)
	c.all.bytes.Add(int64(n))
	return n, err
}

func (c *countedConn) Write(b []byte) (int, error) {
	c.all.bytes.Add(int64(len(b)))
	c.all.frames.Add(c.count(b))
	return c.TCPConn.Write(b)
}

func (c *countedConn) count(b []byte) (frames int64) {
	for len(b) > 0 {
		if c.skip > 0 {
			n := min(c.skip, len(b))
			c.skip, b = c.skip-n, b[n:]
			continue
		}
		n := min(headSize-len(c.head), len(b))
		c.head, b = append(c.head, b[:n]...), b[n:]
		if len(c.head) < headSize {
			return frames
		}
		if c.head[3] == dataFrame && binary.BigEndian.Uint32(c.head[5:]) == firstStream {
			frames++
		}
		c.skip = int(binary.BigEndian.Uint32(c.head) >> 8)
		c.head = c.head[:0]
	}
	return frames
}

// ReadFrom and WriteTo would go round Read and Write.
func (c *countedConn) ReadFrom(r io.Reader) (int64, error) {
	return io.Copy(struct{ io.Writer }{c}, r)
}

func (c *countedConn) WriteTo(w io.Writer) (int64, error) {
	return io.Copy(w, struct{ io.Reader }{c})
}

// However the bytes are cut into writes, the same frames are counted.
func TestTrafficCountsFrames(t *testing.T) {
	frame := func(size int, kind, stream byte) []byte {
		return append([]byte{0, byte(size >> 8), byte(size), kind, 0, 0, 0, 0, stream}, make([]byte, size)...)
	}
	sent := make([]byte, prefaceSize)
	for _, f := range [][]byte{frame(0, 4, 0), frame(300, 1, 1), frame(700, 0, 1), frame(5, 0, 3), frame(0, 0, 1), frame(9, 0, 1)} {
		sent = append(sent, f...)
	}
	for size := 1; size <= len(sent); size++ {
		c, got := &countedConn{skip: prefaceSize}, int64(0)
		for at := 0; at < len(sent); at += size {
			got += c.count(sent[at:min(at+size, len(sent))])
		}
		if got != 3 {
			t.Fatalf("in writes of %d bytes: %d frames, want 3", size, got)
		}
	}
}
