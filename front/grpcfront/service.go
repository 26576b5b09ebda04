package grpcfront

import (
	"context"

	"google.golang.org/grpc"

	ringlimitv1 "github.com/ringlimit/ringlimit/api/ringlimit/v1"
	"github.com/ringlimit/ringlimit/internal/wire"
)

const serviceName = "ringlimit.v1.RateLimiter"

// service is what the generated code would register, but for the messages: they stay
// as they came. See package wire.
func (s *Server) service() *grpc.ServiceDesc {
	return &grpc.ServiceDesc{
		ServiceName: serviceName,
		HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{
			s.unary("Check", s.check),
			s.unary("CheckBatch", s.checkBatch),
			s.unary("Refund", s.refund),
		},
		Streams: []grpc.StreamDesc{{
			StreamName:    "CheckStream",
			Handler:       func(_ any, stream grpc.ServerStream) error { return s.checkStream(stream) },
			ServerStreams: true,
			ClientStreams: true,
		}},
		Metadata: ringlimitv1.File_ringlimit_v1_ratelimiter_proto.Path(),
	}
}

// method answers one message with another.
type method func(ctx context.Context, ask string) (wire.Out, error)

func (s *Server) unary(name string, m method) grpc.MethodDesc {
	answer := func(ctx context.Context, ask any) (any, error) {
		s.calls.begin()
		defer s.calls.end()
		out, err := m(ctx, string(*ask.(*wire.In)))
		if err != nil {
			return nil, s.failure(err).status()
		}
		return &out, nil
	}
	info := &grpc.UnaryServerInfo{Server: s, FullMethod: "/" + serviceName + "/" + name}
	return grpc.MethodDesc{
		MethodName: name,
		Handler: func(_ any, ctx context.Context, read func(any) error, interceptor grpc.UnaryServerInterceptor) (any, error) {
			var ask wire.In
			if err := read(&ask); err != nil {
				return nil, err
			}
			if interceptor == nil {
				return answer(ctx, &ask)
			}
			return interceptor(ctx, &ask, info, answer)
		},
	}
}
