package wire

import (
	"context"
	"net"
	"time"

	"github.com/cespare/xxhash/v2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
	"github.com/ringlimit/ringlimit/limit"
)

// Mesh is one node of a cluster that does everything by unary gRPC calls, with
// ringlimit's public messages: clients ask any node, and a node that does not own
// the key asks the one that does. It is what many would write.
type Mesh struct {
	pb.UnimplementedRateLimiterServer
	judge  *Judge
	self   int
	server *grpc.Server
	conns  []*grpc.ClientConn
	peers  []pb.RateLimiterClient // nil at self
}

// NewMesh is node number self of those at the addresses.
func NewMesh(j *Judge, addresses []string, self int) (*Mesh, error) {
	m := &Mesh{judge: j, self: self, server: grpc.NewServer(), peers: make([]pb.RateLimiterClient, len(addresses))}
	pb.RegisterRateLimiterServer(m.server, m)
	for i, addr := range addresses {
		if i == self {
			continue
		}
		conn, err := Dial(addr)
		if err != nil {
			m.Close()
			return nil, err
		}
		m.conns = append(m.conns, conn)
		m.peers[i] = pb.NewRateLimiterClient(conn)
	}
	return m, nil
}

// Serve answers until Close.
func (m *Mesh) Serve(l net.Listener) error { return m.server.Serve(l) }

// Close ends the node.
func (m *Mesh) Close() {
	m.server.Stop()
	for _, c := range m.conns {
		_ = c.Close()
	}
}

// Check decides, or asks the owner once.
func (m *Mesh) Check(ctx context.Context, req *pb.CheckRequest) (*pb.Verdict, error) {
	if owner := int(xxhash.Sum64String(req.Key) % uint64(len(m.peers))); owner != m.self {
		return m.peers[owner].Check(ctx, req)
	}
	now := m.judge.Now()
	var v limit.Verdict
	if err := m.judge.Take(now, []byte(req.Key), 1, &v); err != nil {
		return nil, status.Error(codes.Unavailable, err.Error())
	}
	return verdict(now, &v), nil
}

func verdict(now int64, v *limit.Verdict) *pb.Verdict {
	return &pb.Verdict{
		Allowed: v.Allowed, Limit: &v.Limit, Remaining: &v.Remaining, Source: pb.Source_SOURCE_OWNER, Rule: "all",
		ResetAt:    timestamppb.New(time.Unix(0, now).Add(v.ResetAfter)),
		ResetAfter: durationpb.New(v.ResetAfter),
	}
}
