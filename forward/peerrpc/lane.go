package peerrpc

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/ringlimit/ringlimit/forward/peerrpc/peerpb"
)

// A lane is a connection of its own for the frames of one stream of checks. A frame
// that goes through gRPC is handed from goroutine to goroutine four times on its way,
// and each of them may wake a thread. On a lane who has a frame writes it, and who
// waits for one reads it.
//
// The stream remains what stands for both: it admits, it says whether the other is
// there, and the lane ends with it. A frame on a lane is its length in four bytes,
// little-endian, and the frame as protobuf.
const laneHead = 4

// laneRoom is enough for the frames that may be unanswered, however slow the other is
// to read: who writes one is a caller, and must not wait. Nor must the reader of
// answers, who writes as well: the owner may be waiting for him.
const laneRoom = maxUnanswered * maxFrame

// sendingLane writes frames. It is not safe for concurrent use.
type sendingLane struct {
	conn net.Conn
	buf  []byte // kept from frame to frame
}

// Send writes a frame whole.
func (l *sendingLane) Send(f *peerpb.Frame) error {
	l.buf = appendFrame(append(l.buf[:0], 0, 0, 0, 0), f)
	binary.LittleEndian.PutUint32(l.buf, uint32(len(l.buf)-laneHead))
	_, err := l.conn.Write(l.buf)
	if cap(l.buf) > 2*frameBytes { // long names, once, are not to stay
		l.buf = nil
	}
	return err
}

// laneBuffer holds several frames of the usual size.
const laneBuffer = 32 << 10

// receivingLane reads frames of at most so many bytes. It is not safe for concurrent
// use.
type receivingLane struct {
	in   *bufio.Reader
	most int
}

func newReceivingLane(conn net.Conn, most int) *receivingLane {
	return &receivingLane{bufio.NewReaderSize(conn, laneBuffer), most}
}

// Recv reads the next frame into f, which keeps the room of its records. The error is
// errBadFrame, or the connection's.
func (l *receivingLane) Recv(f *peerpb.Frame) error {
	head, err := l.in.Peek(laneHead)
	if err != nil {
		return err
	}
	size := int(binary.LittleEndian.Uint32(head))
	if size > l.most {
		return errBadFrame
	}
	_, _ = l.in.Discard(laneHead) // it was peeked
	if size > l.in.Size() {
		return l.recvLong(f, size)
	}
	whole, err := l.in.Peek(size)
	if err != nil {
		return err
	}
	defer func() { _, _ = l.in.Discard(size) }()
	return parseFrame(whole, f)
}

// recvLong is for a frame that does not fit the buffer: it has long names.
func (l *receivingLane) recvLong(f *peerpb.Frame, size int) error {
	whole := make([]byte, size)
	if _, err := io.ReadFull(l.in, whole); err != nil {
		return err
	}
	return parseFrame(whole, f)
}

func parseFrame(whole []byte, f *peerpb.Frame) error {
	if err := readFrame(whole, f); err != nil {
		return fmt.Errorf("%w: %w", errBadFrame, err)
	}
	return nil
}

// prepareLane sets what gRPC sets on its own connections: silence and what is not
// acknowledged end them.
func prepareLane(conn net.Conn) error {
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		return nil // in memory
	}
	if err := tcp.SetWriteBuffer(2 * laneRoom); err != nil { // the kernel counts what surrounds the bytes, too
		return err
	}
	if err := tcp.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: pingAfter, Interval: time.Second, Count: int(pingTimeout / time.Second)}); err != nil {
		return err
	}
	return abandonUnacknowledged(tcp, pingTimeout)
}
