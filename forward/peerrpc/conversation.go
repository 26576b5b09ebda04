package peerrpc

import (
	"context"
	"fmt"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/ringlimit/ringlimit/forward/peerrpc/peerpb"
)

// checks is a stream as gRPC has it at the asker.
type checks = grpc.BidiStreamingClient[peerpb.Frame, peerpb.Frame]

// conversation is a stream of checks as the asker has it. Its frames go on a lane,
// unless the owner does not know lanes or none could be opened: then gRPC carries
// them.
type conversation struct {
	stream checks
	cancel context.CancelFunc // ends the stream
	groups bool               // the owner's version knows groups and ages
	lane   *lane              // nil: none
}

// lane is the asker's end of a lane.
type lane struct {
	sendingLane
	in     *receivingLane
	ended  chan struct{} // the stream has
	status error         // why; once ended
}

// welcomed opens a stream, and its lane if the owner offers one. After a lane that
// could not be opened the next stream does without: something between the nodes may
// let only gRPC through. The one after it tries again.
func (c *conn) welcomed(ctx context.Context, cc *grpc.ClientConn) (*conversation, error) {
	ctx, cancel := context.WithCancel(ctx)
	talk, with := &conversation{cancel: cancel}, newTicket()
	greeting := metadata.AppendToOutgoingContext(ctx, laneKey, with.String())
	if c.laneless {
		c.log.Info("checks go to a peer through gRPC, which costs more: no connection of their own could be opened to its port")
		greeting = ctx
	}
	c.laneless = false
	owner, err := talk.open(greeting, cc)
	if err == nil && offersLane(owner) {
		err = talk.openLane(ctx, c.cfg.Dial, c.peer.Peer, with)
		c.laneless = err != nil
	}
	if err != nil {
		talk.end()
		return nil, err
	}
	return talk, nil
}

// open returns the owner's welcome.
func (t *conversation) open(ctx context.Context, cc *grpc.ClientConn) (metadata.MD, error) {
	var err error
	if t.stream, err = peerpb.NewPeerClient(cc).Checks(ctx); err != nil {
		return nil, err
	}
	header, err := t.stream.Header()
	if err != nil {
		return nil, err
	}
	if header == nil { // refused; the status says why
		_, err := t.stream.Recv()
		return nil, err
	}
	v, _ := versionOf(header) // which is checked
	t.groups = v >= grouped
	return header, checkVersion(header)
}

// openLane connects to the owner, who waits for the ticket and answers it: without
// that, checks would be lost, stream after stream, in something between the nodes that
// takes any connection and passes on only gRPC.
func (t *conversation) openLane(ctx context.Context, dial func(context.Context, string) (net.Conn, error), addr string, with ticket) error {
	conn, err := dial(ctx, addr)
	if err != nil {
		return err
	}
	t.lane = &lane{sendingLane: sendingLane{conn: conn}, in: newReceivingLane(conn, maxReply), ended: make(chan struct{})}
	go t.watch()
	if err := prepareLane(conn); err != nil {
		return err
	}
	if _, err := conn.Write(greetingOf(with)); err != nil {
		return err
	}
	return awaitLaneWelcome(t.lane.in.in)
}

// watch ends the lane with the stream.
func (t *conversation) watch() {
	defer close(t.lane.ended)
	if _, t.lane.status = t.stream.Recv(); t.lane.status == nil {
		t.lane.status = errOffLane
		t.cancel()
	}
	_ = t.lane.conn.Close() // who reads gets the status
}

// Send implements sender.
func (t *conversation) Send(f *peerpb.Frame) error {
	if t.lane != nil {
		return t.lane.Send(f)
	}
	return t.stream.Send(f)
}

// CloseSend implements sender: the owner ends the stream then, and the lane.
func (t *conversation) CloseSend() error { return t.stream.CloseSend() }

// Recv reads a frame into f, which keeps the room of its records. The error is why
// the stream has ended, and io.EOF after CloseSend: the lane knows only that nothing
// comes any more.
func (t *conversation) Recv(f *peerpb.Frame) error {
	if t.lane == nil {
		return t.stream.RecvMsg(f)
	}
	err := t.lane.in.Recv(f)
	if err == nil {
		return nil
	}
	patience := time.NewTimer(laneGrace)
	defer patience.Stop()
	select {
	case <-t.lane.ended:
		return t.lane.status
	case <-patience.C:
		return fmt.Errorf("the lane of checks broke alone: %w", err)
	}
}

// laneGrace is how much later the end of a stream may be heard of than that of its
// lane.
const laneGrace = 100 * time.Millisecond

// end breaks off what is left, and returns when nothing of it runs.
func (t *conversation) end() {
	t.cancel()
	if t.lane != nil {
		_ = t.lane.conn.Close() // watch closes it, too
		<-t.lane.ended
	}
}
