package peerrpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"google.golang.org/grpc"

	"github.com/ringlimit/ringlimit/forward/peerrpc/parcel"
	"github.com/ringlimit/ringlimit/forward/peerrpc/peerpb"
	"github.com/ringlimit/ringlimit/owner/transfer"
)

// letters is a stream of mail as the sender has it.
type letters = grpc.BidiStreamingClient[peerpb.Letter, peerpb.Farewell]

// carrier takes the mail of one outbox to the peer, on a stream of its own. What
// was under way when the stream broke, or waited, is lost.
type carrier struct {
	box  *outbox
	log  *slog.Logger
	told string // what was last logged
}

// run carries mail until ctx ends, or the peer has said farewell and was sent what
// waited. A stream that ends by itself, because the peer cannot read a letter or
// the stream has named all rules it can, is made anew while staying lasts, after a
// pause in which the end of the connection is noticed.
func (c *carrier) run(ctx, staying context.Context, cc *grpc.ClientConn) {
	defer c.box.drop()
	for {
		began := time.Now()
		c.box.set(up)
		err := c.carry(ctx, cc)
		if err == errFarewell {
			return
		}
		c.box.set(connecting)
		c.box.drop()
		if !pause(staying, max(firstPause, spacing-time.Since(began)), nil) {
			return
		}
		c.tell(err)
	}
}

func (c *carrier) tell(err error) {
	if reason := err.Error(); reason != c.told {
		c.told = reason
		c.log.Warn("a stream of mail to a peer ended", "error", err)
	}
}

// carry opens a stream and says why it ended.
func (c *carrier) carry(ctx context.Context, cc *grpc.ClientConn) error {
	stream, err := peerpb.NewPeerClient(cc).Transfer(ctx)
	if err != nil {
		return err
	}
	h := &hearing{farewell: make(chan struct{}), over: make(chan struct{})}
	go h.listen(stream)
	err = c.send(stream, h)
	_ = stream.CloseSend() // never fails
	<-h.over               // what was sent has been received, or never will be
	if err == nil {
		err = h.err
	}
	return err
}

// send ends when the stream does, or after a farewell. Its error says that no
// more letters can be packed for the stream.
func (c *carrier) send(stream letters, h *hearing) error {
	packer := parcel.NewPacker()
	for {
		select {
		case m := <-c.box.queue:
			if err := c.sendOne(stream, packer, c.box.taken(m)); err != nil {
				return err
			}
		case <-h.farewell:
			c.box.set(down)
			return c.sendRest(stream, packer)
		case <-h.over:
			return nil
		}
	}
}

func (c *carrier) sendRest(stream letters, packer *parcel.Packer) error {
	for {
		select {
		case m := <-c.box.queue:
			if err := c.sendOne(stream, packer, c.box.taken(m)); err != nil {
				return err
			}
		default:
			return nil
		}
	}
}

func (c *carrier) sendOne(stream letters, packer *parcel.Packer, m transfer.Message) error {
	letter, err := packer.Pack(m)
	switch {
	case errors.Is(err, parcel.ErrTooLarge):
		c.log.Error("a message to a peer is too large to be sent", "message", fmt.Sprintf("%T", m), "error", err)
		return nil
	case err != nil:
		return err
	}
	_ = stream.Send(letter) // fails only with the stream, of which the hearing tells
	return nil
}

// hearing is what the peer says on a stream of mail: at most a farewell.
type hearing struct {
	farewell chan struct{}
	over     chan struct{}
	err      error // once over
}

func (h *hearing) listen(stream letters) {
	defer close(h.over)
	if _, h.err = stream.Recv(); h.err != nil {
		return
	}
	close(h.farewell)
	if _, h.err = stream.Recv(); h.err == io.EOF {
		h.err = errFarewell
	}
}
