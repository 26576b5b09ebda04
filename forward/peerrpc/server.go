package peerrpc

import (
	"context"
	"errors"
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
	"github.com/ringlimit/ringlimit/owner/transfer"
)

// Decider is what a server decides with: an *owner/driver.Driver.
type Decider interface {
	// DecideFrame decides the calls in order, into results of the same length.
	// Their errors are owner.ErrFull, *transfer.NotMine, or owner.ErrLater: then
	// late.Answer(frame, i, …) follows, unless the deadline passes first. Both
	// times are in Unix nanoseconds. It does not wait, and does not keep calls.
	DecideFrame(now, deadline int64, calls []owner.Call, results []owner.Result, late owner.Late, frame uint64)
	Rule(id limit.RuleID) *limit.Rule
	// Era is raised before this node decides again after it had to stop, because
	// it stood still or lost the others. What was asked before that is refused.
	Era() uint64
	// NotMine refuses a call that was not counted, and hints at nobody.
	NotMine() error
}

// ServerConfig is what a Server needs. All fields but Rules are required.
type ServerConfig struct {
	Self    membership.NodeID
	Token   string // what every peer has to show; from the cluster's secret
	Decider Decider
	// Receive takes a peer's message about counters that change hands. It is
	// called from two goroutines a peer, and what the peer sends next on the same
	// stream waits until it returns. It may call Pool.Post.
	Receive func(from membership.NodeID, boot membership.BootID, m transfer.Message)
	// Rules gives rules to peers that lack them. Nil: there are none to give.
	Rules RulesGiver
	// Partitions, Seed and Partition say where a counter belongs. A peer's word
	// is not taken for it.
	Partitions int
	Seed       owner.Seed
	Partition  func(hash uint64) int
	Now        func() int64
	Logger     *slog.Logger
}

// Server answers the checks of the other nodes and takes their mail. It decides
// or says "not mine"; it never forwards.
type Server struct {
	peerpb.UnimplementedPeerServer
	cfg      ServerConfig
	grpc     *grpc.Server
	lanes    *lanes
	refusals refusals
	giving   sync.WaitGroup // who gives rules

	mu       sync.Mutex
	streams  map[guest]struct{}
	stopping bool
}

// guest is a stream that is being served.
type guest interface {
	farewell() // asks the peer to end the stream
	end()      // forbids a later farewell
}

// NewServer makes a server that listens to nobody yet.
func NewServer(cfg ServerConfig) *Server {
	lanes := newLanes()
	s := &Server{
		cfg: cfg, grpc: grpc.NewServer(append(serverOptions(), grpc.Creds(lanes))...), lanes: lanes,
		refusals: refusals{log: cfg.Logger, now: cfg.Now},
		streams:  map[guest]struct{}{},
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

// Stop says farewell to all peers, answers what they have asked, takes what they
// have sent, and returns when every goroutine has ended. It breaks off what is
// left when ctx ends, or after two seconds.
func (s *Server) Stop(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, farewellTime)
	defer cancel()
	broken := make(chan struct{})
	inTime := context.AfterFunc(ctx, func() { s.grpc.Stop(); close(broken) })
	var farewells sync.WaitGroup
	for _, g := range s.leave() { // together: one that is stuck must not delay the others
		farewells.Go(g.farewell)
	}
	s.grpc.GracefulStop()
	farewells.Wait()
	if !inTime() {
		<-broken
	}
	s.giving.Wait()
}

// leave returns the streams that are to hear a farewell. Those that are opened
// later say it themselves.
func (s *Server) leave() []guest {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopping = true
	return slices.Collect(maps.Keys(s.streams))
}

// Checks implements the peer protocol: one frame after the other, on a lane if the
// asker wants one.
func (s *Server) Checks(stream grpc.BidiStreamingServer[peerpb.Frame, peerpb.Frame]) error {
	if _, err := s.examine(stream); err != nil {
		return err
	}
	a := newAnswerer(&s.cfg, stream)
	header := welcome()
	if t, asked := askedLane(stream.Context()); asked {
		a.expect(s.lanes.expect(t))
		defer s.lanes.forget(t, a.lane)
		header.Set(laneKey, laneVersion)
	}
	if err := stream.SendHeader(header); err != nil {
		return err
	}
	s.register(a)
	defer s.unregister(a)
	err := a.run()
	if errors.Is(err, errBadFrame) {
		s.refusals.tell(stream.Context(), err) // on a lane the asker does not hear why
		return status.Error(codes.InvalidArgument, err.Error())
	}
	return err
}

// Transfer implements the peer protocol: one letter after the other.
func (s *Server) Transfer(stream grpc.BidiStreamingServer[peerpb.Letter, peerpb.Farewell]) error {
	from, err := s.admit(stream)
	if err != nil {
		return err
	}
	r := newReceiver(&s.cfg, from, stream)
	s.register(r)
	defer s.unregister(r)
	err = r.run()
	if isBadLetter(err) {
		s.refusals.tell(stream.Context(), err)
	}
	return err
}

func (s *Server) admit(stream grpc.ServerStream) (caller, error) {
	c, err := s.examine(stream)
	if err != nil {
		return c, err
	}
	return c, stream.SendHeader(welcome())
}

// examine refuses a stranger.
func (s *Server) examine(stream grpc.ServerStream) (caller, error) {
	c, err := admit(stream.Context(), s.cfg.Self, s.cfg.Token)
	if err != nil {
		s.refusals.tell(stream.Context(), err)
	}
	return c, err
}

func (s *Server) register(g guest) {
	s.mu.Lock()
	s.streams[g] = struct{}{}
	stopping := s.stopping
	s.mu.Unlock()
	if stopping {
		g.farewell()
	}
}

func (s *Server) unregister(g guest) {
	s.mu.Lock()
	delete(s.streams, g)
	s.mu.Unlock()
	g.end()
}
