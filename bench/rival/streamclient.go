package rival

import (
	"context"
	"fmt"

	"github.com/ringlimit/ringlimit/bench/load"
	"github.com/ringlimit/ringlimit/client"
	"github.com/ringlimit/ringlimit/limit"
)

// streamClient is package client in front of three real nodes: all callers share it.
type streamClient struct {
	fleet  fleet
	client *client.Client
}

func (s *streamClient) Start(ctx context.Context, env *Env) (err error) {
	if err := s.fleet.start(ctx, env, nodes, 0); err != nil {
		return err
	}
	s.client, err = client.New(client.Config{Addresses: s.fleet.grpc(), Timeout: deadline})
	return err
}

func (s *streamClient) Caller(int) load.Ask {
	return one(func(ctx context.Context, key string) (bool, error) {
		v, err := s.client.Check(ctx, limit.Request{Key: key})
		if err == nil && v.Source.Decider() != "owner" {
			return false, fmt.Errorf("the verdict is by %q: %+v", v.Source, v)
		}
		return v.Allowed, err
	})
}

func (s *streamClient) Stop() { s.client.Close() }
