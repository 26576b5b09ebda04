package peerrpc

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/ringlimit/ringlimit/forward/peerrpc/peerpb"
	"github.com/ringlimit/ringlimit/limit"
	"github.com/ringlimit/ringlimit/membership"
	"github.com/ringlimit/ringlimit/owner"
)

// Table is what a server decides with: an *owner.Table.
type Table interface {
	DecideFrame(now int64, calls []owner.Call, results []owner.Result)
	Rule(id limit.RuleID) *limit.Rule
}

// ServerConfig is what a Server needs. All fields are required.
type ServerConfig struct {
	Self  membership.NodeID
	Token string // what every peer has to show; from the cluster's secret
	Table Table
	// Seed and Partition say where a counter belongs. A peer's word is not
	// taken for it.
	Seed      owner.Seed
	Partition func(hash uint64) int
	// Hint names the owner of a partition in this node's ring, and the ring.
	Hint   func(partition int) (membership.NodeID, uint64)
	Now    func() int64
	Logger *slog.Logger
}

// Server answers the checks of the other nodes. It decides or says "not mine";
// it never forwards.
type Server struct {
	peerpb.UnimplementedPeerServer
	cfg      ServerConfig
	grpc     *grpc.Server
	refusals refusals

	mu       sync.Mutex
	streams  map[*answerer]struct{}
	stopping bool
}

// NewServer makes a server that listens to nobody yet.
func NewServer(cfg ServerConfig) *Server {
	s := &Server{
		cfg: cfg, grpc: grpc.NewServer(serverOptions()...),
		refusals: refusals{log: cfg.Logger, now: cfg.Now},
		streams:  map[*answerer]struct{}{},
	}
	peerpb.RegisterPeerServer(s.grpc, s)
	return s
}

// Serve answers on l until Stop, and then returns nil. It closes l.
func (s *Server) Serve(l net.Listener) error {
	if err := s.grpc.Serve(l); !errors.Is(err, grpc.ErrServerStopped) {
		return err
	}
	return nil
}

// farewellTime is how long Stop waits for the peers to take their leave. They
// need a round trip; a peer that hangs would hold the node up for ever.
const farewellTime = 2 * time.Second

// Stop says farewell to all peers, answers what they have asked, and returns
// when every goroutine has ended. It breaks off what is left when ctx ends, or
// after two seconds.
func (s *Server) Stop(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, farewellTime)
	defer cancel()
	broken := make(chan struct{})
	inTime := context.AfterFunc(ctx, func() { s.grpc.Stop(); close(broken) })
	var farewells sync.WaitGroup
	for _, a := range s.leave() { // together: one that is stuck must not delay the others
		farewells.Go(a.farewell)
	}
	s.grpc.GracefulStop()
	farewells.Wait()
	if !inTime() {
		<-broken
	}
}

// leave returns the streams that are to hear a farewell. Those that are opened
// later say it themselves.
func (s *Server) leave() []*answerer {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopping = true
	return slices.Collect(maps.Keys(s.streams))
}

// Checks implements the peer protocol: one frame after the other.
func (s *Server) Checks(stream grpc.BidiStreamingServer[peerpb.Frame, peerpb.Frame]) error {
	if err := admit(stream.Context(), s.cfg.Self, s.cfg.Token); err != nil {
		s.refusals.tell(stream.Context(), err)
		return err
	}
	if err := stream.SendHeader(welcome()); err != nil {
		return err
	}
	a := &answerer{cfg: &s.cfg, stream: stream}
	s.register(a)
	defer s.unregister(a)
	return a.run()
}

func (s *Server) register(a *answerer) {
	s.mu.Lock()
	s.streams[a] = struct{}{}
	stopping := s.stopping
	s.mu.Unlock()
	if stopping {
		a.farewell()
	}
}

func (s *Server) unregister(a *answerer) {
	s.mu.Lock()
	delete(s.streams, a)
	s.mu.Unlock()
	a.end()
}

// answerer serves one stream.
type answerer struct {
	cfg    *ServerConfig
	stream grpc.BidiStreamingServer[peerpb.Frame, peerpb.Frame]
	judge  judge

	mu    sync.Mutex // to send: an answer, or the farewell
	ended bool
}

func (a *answerer) run() error {
	a.judge.cfg = a.cfg
	var ask, reply peerpb.Frame
	for {
		switch err := a.stream.RecvMsg(&ask); {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
		var err error
		reply.Id = ask.Id
		if reply.Records, err = a.judge.frame(ask.Records, reply.Records[:0]); err != nil {
			return status.Error(codes.InvalidArgument, err.Error())
		}
		if err := a.send(&reply); err != nil {
			return err
		}
	}
}

// send may be followed by a change of the frame: gRPC has encoded it when Send
// returns, and no stats handler is installed that would look at it later.
func (a *answerer) send(f *peerpb.Frame) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.stream.Send(f)
}

// farewell asks the peer to send no more. When it has its answers it ends the
// stream, and so does run.
func (a *answerer) farewell() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.ended {
		_ = a.stream.Send(&peerpb.Frame{Id: farewell}) // fails only with the stream
	}
}

// end waits for a farewell that is being sent, and forbids a later one: the
// stream is gRPC's again when Checks returns.
func (a *answerer) end() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ended = true
}
