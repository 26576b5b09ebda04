package floor

import (
	"context"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// Unary is plain grpc-go: one unary call a question, all options at their defaults.
func Unary(tb testing.TB, decide Decide) Asker {
	tb.Helper()
	l := listen(tb)
	server := grpc.NewServer()
	server.RegisterService(&grpc.ServiceDesc{
		ServiceName: "floor.Unary", HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{{MethodName: "Ask", Handler: handler(decide)}},
	}, struct{}{})
	served := make(chan struct{})
	go func() { defer close(served); _ = server.Serve(l) }()
	cc, err := grpc.NewClient("passthrough:///"+l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		_ = cc.Close()
		server.Stop()
		<-served
	})
	return func(buf, question []byte) ([]byte, error) {
		var reply wrapperspb.BytesValue
		err := cc.Invoke(context.Background(), "/floor.Unary/Ask", &wrapperspb.BytesValue{Value: question}, &reply)
		return append(buf, reply.Value...), err
	}
}

func handler(decide Decide) grpc.MethodHandler {
	return func(_ any, _ context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
		var ask wrapperspb.BytesValue
		if err := decode(&ask); err != nil {
			return nil, err
		}
		return &wrapperspb.BytesValue{Value: decide(nil, ask.Value)}, nil
	}
}
