package client_test

import (
	"context"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"

	"github.com/ringlimit/ringlimit/client"
	"github.com/ringlimit/ringlimit/limit"
)

// Calls that wait for a node that does not answer go to another one as soon as that
// is connected.
func TestCallsDoNotWaitForASilentNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNodes(t)
		n.start("a", perMinute(t, 1000))
		dial := func(ctx context.Context, name string) (net.Conn, error) {
			if name == "silent" {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			time.Sleep(10 * time.Millisecond)
			return n.dial(ctx, name)
		}
		c, err := client.New(client.Config{
			Addresses:   []string{"passthrough:///silent", "passthrough:///a"},
			DialOptions: []grpc.DialOption{grpc.WithContextDialer(dial)},
		})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		began := time.Now()
		var callers sync.WaitGroup
		for i := range 50 {
			callers.Go(func() {
				if _, err := c.Check(t.Context(), key(i)); err != nil || time.Since(began) > 20*time.Millisecond {
					t.Errorf("call %d: %v after %v", i, err, time.Since(began))
				}
			})
		}
		for i := range 50 {
			callers.Go(func() {
				if got, err := c.CheckBatch(t.Context(), []limit.Request{key(i)}); err != nil || len(got) != 1 || got[0].Err != nil || time.Since(began) > 20*time.Millisecond {
					t.Errorf("batch %d: %v, %v after %v", i, got, err, time.Since(began))
				}
			})
		}
		callers.Wait()
	})
}
