package peerrpc

import (
	"context"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"

	"github.com/ringlimit/ringlimit/forward/peerrpc/parcel"
)

// gRPC's own defaults suit clients of a distant service: 20 s to connect, 120 s
// between attempts. Peers are near, and a peer that is back must be used at
// once.
const (
	connectTimeout = time.Second          // for the connection and the peer's welcome
	firstPause     = 2 * time.Millisecond // between attempts
	maxPause       = time.Second
	spacing        = 20 * time.Millisecond // at least, of attempts after streams that broke
	pingAfter      = 10 * time.Second      // of silence
	pingTimeout    = 2 * time.Second
	// Windows that never fill, of fixed size: gRPC's dynamic ones cost a probe
	// for each frame.
	window = 1 << 20
)

func dialOptions(dial func(context.Context, string) (net.Conn, error)) []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithContextDialer(dial),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: pingAfter, Timeout: pingTimeout}),
		grpc.WithConnectParams(grpc.ConnectParams{MinConnectTimeout: connectTimeout}),
		grpc.WithStaticStreamWindowSize(window),
		grpc.WithStaticConnWindowSize(window),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxReply), grpc.WaitForReady(false), grpc.ForceCodecV2(newCodec())),
		grpc.WithDisableRetry(), // a check must not be sent twice
		grpc.WithIdleTimeout(0),
		grpc.WithNoProxy(),
		grpc.WithDisableServiceConfig(),
	}
}

func serverOptions() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: pingAfter, Timeout: pingTimeout}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: pingAfter / 2, PermitWithoutStream: true}),
		grpc.StaticStreamWindowSize(window),
		grpc.StaticConnWindowSize(window),
		grpc.MaxRecvMsgSize(max(parcel.MaxLetter, maxFrame+32)), // the judge looks at a frame's size
		grpc.ForceServerCodecV2(newCodec()),
		grpc.MaxConcurrentStreams(8), // a peer opens three, one to ask for rules, and others while those end
		grpc.MaxHeaderListSize(8 << 10),
		grpc.WaitForHandlers(true), // who stops a server may free what it uses
		grpc.ConnectionTimeout(2 * connectTimeout),
	}
}
