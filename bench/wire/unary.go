package wire

import (
	"context"
	"net"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/ringlimit/ringlimit/limit"
)

// unaryMethod takes a record in a BytesValue and answers with one.
const unaryMethod = "/bench.Unary/Check"

// ServeUnary answers unary calls until the listener is closed.
func ServeUnary(l net.Listener, j *Judge) error {
	handler := func(_ any, _ context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
		var ask wrapperspb.BytesValue
		if err := decode(&ask); err != nil {
			return nil, err
		}
		answer, err := j.answer(nil, ask.Value)
		return &wrapperspb.BytesValue{Value: answer}, err
	}
	server := grpc.NewServer()
	server.RegisterService(&grpc.ServiceDesc{
		ServiceName: "bench.Unary", HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{{MethodName: "Check", Handler: handler}},
	}, struct{}{})
	return server.Serve(l)
}

// Unary asks a server of ServeUnary. It is safe for concurrent use.
type Unary struct{ conn *grpc.ClientConn }

// DialUnary connects with grpc-go's defaults.
func DialUnary(addr string) (*Unary, error) {
	conn, err := Dial(addr)
	return &Unary{conn}, err
}

// Dial is a connection without TLS, with grpc-go's defaults.
func Dial(addr string) (*grpc.ClientConn, error) {
	return grpc.NewClient("passthrough:///"+addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
}

// Close ends the connection.
func (u *Unary) Close() error { return u.conn.Close() }

// Check asks for one unit of the name.
func (u *Unary) Check(ctx context.Context, name string) (limit.Verdict, error) {
	ask, reply := wrapperspb.BytesValue{Value: appendRecord(nil, 1, name)}, wrapperspb.BytesValue{}
	if err := u.conn.Invoke(ctx, unaryMethod, &ask, &reply); err != nil {
		return limit.Verdict{}, err
	}
	v, _, err := cutAnswer(reply.Value)
	return v, err
}
