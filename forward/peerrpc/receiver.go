package peerrpc

import (
	"io"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/ringlimit/ringlimit/forward/peerrpc/parcel"
	"github.com/ringlimit/ringlimit/forward/peerrpc/peerpb"
)

// receiver takes the letters of one stream.
type receiver struct {
	cfg    *ServerConfig
	from   caller
	in     grpc.BidiStreamingServer[peerpb.Letter, peerpb.Farewell]
	out    outgoing[peerpb.Farewell]
	parcel *parcel.Unpacker
}

func newReceiver(cfg *ServerConfig, from caller, stream grpc.BidiStreamingServer[peerpb.Letter, peerpb.Farewell]) *receiver {
	return &receiver{
		cfg: cfg, from: from, in: stream, out: outgoing[peerpb.Farewell]{stream: stream},
		parcel: parcel.NewUnpacker(parcel.UnpackConfig{
			Partitions: cfg.Partitions, Seed: cfg.Seed, Partition: cfg.Partition, Rule: cfg.Decider.Rule,
		}),
	}
}

func (r *receiver) run() error {
	for {
		letter, err := r.in.Recv() // a new one: the message shares its memory
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
		m, err := r.parcel.Unpack(letter)
		if err != nil {
			return status.Error(codes.InvalidArgument, err.Error())
		}
		if m != nil { // else of a kind that a later version knows
			r.cfg.Receive(r.from.id, r.from.boot, m)
		}
	}
}

// isBadLetter says whether a stream ended because of what was sent on it: a
// letter that is broken, larger than parcel.MaxLetter, or no letter at all. The
// latter two are gRPC's to tell.
func isBadLetter(err error) bool {
	switch status.Code(err) {
	case codes.InvalidArgument, codes.ResourceExhausted, codes.Internal:
		return true
	}
	return false
}

// farewell asks the peer to send no more. It ends the stream when it has sent
// what it had.
func (r *receiver) farewell() { _ = r.out.send(&peerpb.Farewell{}) } // fails only with the stream

func (r *receiver) end() { r.out.end() }
