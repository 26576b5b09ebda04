package peerrpc

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
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
	Learn(r *limit.Rule)
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
	cfg  ServerConfig
	grpc *grpc.Server

	mu       sync.Mutex
	streams  map[*answerer]struct{}
	stopping bool
}

// NewServer makes a server that listens to nobody yet.
func NewServer(cfg ServerConfig) *Server {
	s := &Server{cfg: cfg, grpc: grpc.NewServer(serverOptions()...), streams: map[*answerer]struct{}{}}
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

// Stop says farewell to all peers, answers what they have asked, and returns
// when every goroutine has ended. When ctx ends first, it breaks off.
func (s *Server) Stop(ctx context.Context) {
	broken := context.AfterFunc(ctx, s.grpc.Stop)
	defer broken()
	s.mu.Lock()
	s.stopping = true
	for a := range s.streams {
		a.farewell()
	}
	s.mu.Unlock()
	s.grpc.GracefulStop()
}

// Checks implements the peer protocol: one frame after the other.
func (s *Server) Checks(stream grpc.BidiStreamingServer[peerpb.Frame, peerpb.Frame]) error {
	if err := admit(stream.Context(), s.cfg.Self, s.cfg.Token); err != nil {
		md, _ := metadata.FromIncomingContext(stream.Context())
		s.cfg.Logger.Warn("refused a peer's stream", "peer", single(md, fromKey), "error", err)
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
	defer s.mu.Unlock()
	s.streams[a] = struct{}{}
	if s.stopping {
		a.farewell()
	}
}

func (s *Server) unregister(a *answerer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.streams, a)
}

// answerer serves one stream.
type answerer struct {
	cfg    *ServerConfig
	stream grpc.BidiStreamingServer[peerpb.Frame, peerpb.Frame]
	judge  judge
	mu     sync.Mutex // to send: an answer, or the farewell
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
func (a *answerer) farewell() { _ = a.send(&peerpb.Frame{Id: farewell}) }
