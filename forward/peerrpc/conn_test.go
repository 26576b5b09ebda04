package peerrpc

import (
	"context"
	"errors"
	"net"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"

	"github.com/ringlimit/ringlimit/forward"
	"github.com/ringlimit/ringlimit/forward/peerrpc/peerpb"
	"github.com/ringlimit/ringlimit/limit"
	"github.com/ringlimit/ringlimit/membership"
	"github.com/ringlimit/ringlimit/owner"
	"github.com/ringlimit/ringlimit/owner/transfer"
)

func TestCheckIsDecidedByTheOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, rule := newPair(t, holding(testPartitions)), tokens(t, 3)
		for i, want := range []limit.Verdict{
			{Allowed: true, Limit: 3, Remaining: 1, ResetAfter: 40 * time.Second},
			{Limit: 3, Remaining: 1, RetryAfter: 20 * time.Second, ResetAfter: 40 * time.Second},
		} {
			if v, err := p.check(rule, "k", 2, time.Second); err != nil || v != want {
				t.Errorf("check %d: %+v, %v; want %+v", i, v, err, want)
			}
		}
	})
}

// A node's name may be anything an operator likes.
func TestNamesThatAreNotASCII(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, name := newNetwork(), membership.NodeID(" knötchen\n")
		serve(t, serverConfig(name, holding(testPartitions)), n.listen("x"))
		peer := newPool(t, n.dial).Peer(membership.Member{ID: name, Peer: "x"})
		if _, err := peer.Check(context.Background(), callOf(tokens(t, 1), "k", 1), within(time.Second)); err != nil {
			t.Error(err)
		}
	})
}

// The owner learns a rule with the second record that names it, and the first,
// which it could not judge, is not counted.
func TestUnknownRuleIsSentOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := holding(testPartitions)
		var frames atomic.Int32
		p := newPair(t, &scripted{table, func(calls []owner.Call, results []owner.Result) {
			frames.Add(1)
			table.DecideFrame(wall(), calls, results)
		}})
		rule := tokens(t, 10)
		for i, wantFrames := range []int32{2, 3, 4} {
			v, err := p.check(rule, "k", 1, time.Second)
			if err != nil || v.Remaining != 9-int64(i) {
				t.Errorf("check %d: %+v, %v", i, v, err)
			}
			if n := frames.Load(); n != wantFrames {
				t.Errorf("check %d: %d frames so far", i, n)
			}
		}
	})
}

func TestNotMineArrivesWithItsHint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := owner.NewTable(owner.Config{Partitions: testPartitions, Now: wall})
		p := newPair(t, table)
		_, err := p.check(tokens(t, 1), "k", 1, time.Second)
		var n *transfer.NotMine
		if !errors.As(err, &n) || n.Hint != "other" || n.Ring != 7 {
			t.Errorf("error %v", err)
		}
	})
}

// An owner that hangs costs each check its deadline, to the millisecond. What
// it answers later reaches nobody, and then it is used again.
func TestOwnerHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table, rule := holding(testPartitions), tokens(t, 100)
		table.Learn(rule)
		thaw := make(chan struct{})
		p := newPair(t, &scripted{table, func(calls []owner.Call, results []owner.Result) {
			<-thaw
			table.DecideFrame(wall(), calls, results)
		}})
		synctest.Wait()
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() {
				time.Sleep(time.Duration(i) * time.Millisecond)
				start := time.Now()
				_, err := p.check(rule, "k", 1, 50*time.Millisecond)
				if took := time.Since(start); !errors.Is(err, forward.ErrTimeout) || took != 50*time.Millisecond {
					t.Errorf("check %d: %v after %v", i, err, took)
				}
			})
		}
		wg.Wait()
		close(thaw)
		// Only the two frames on their way were counted; the rest was not sent.
		v, err := p.check(rule, "k", 1, 50*time.Millisecond)
		if err != nil || v.Remaining != 100-3 {
			t.Errorf("after the thaw: %+v, %v", v, err)
		}
	})
}

func TestCancelledCheckReturnsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table, rule := holding(testPartitions), tokens(t, 100)
		thaw := make(chan struct{})
		table.Learn(rule)
		p := newPair(t, &scripted{table, func(calls []owner.Call, results []owner.Result) {
			<-thaw
			table.DecideFrame(wall(), calls, results)
		}})
		ctx, cancel := context.WithCancel(context.Background())
		time.AfterFunc(3*time.Millisecond, cancel)
		start := time.Now()
		_, err := p.peer.Check(ctx, callOf(rule, "k", 1), within(time.Second))
		if !errors.Is(err, context.Canceled) || time.Since(start) != 3*time.Millisecond {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		close(thaw)
		if _, err := p.check(rule, "k", 1, time.Second); err != nil {
			t.Error(err)
		}
	})
}

// A connection that breaks fails all that was sent on it, at once; then it is made
// anew.
func TestDeadConnectionFailsAtOnceAndComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table, rule := holding(testPartitions), tokens(t, 100)
		table.Learn(rule)
		thaw := make(chan struct{})
		p := newPair(t, &scripted{table, func(calls []owner.Call, results []owner.Result) {
			<-thaw
			table.DecideFrame(wall(), calls, results)
		}})
		synctest.Wait()
		start := time.Now()
		time.AfterFunc(5*time.Millisecond, p.net.cut)
		var wg sync.WaitGroup
		for range maxUnanswered { // more would wait for the next connection
			wg.Go(func() {
				_, err := p.check(rule, "k", 1, time.Second)
				if took := time.Since(start); !errors.Is(err, forward.ErrUnreachable) || took != 5*time.Millisecond {
					t.Errorf("%v after %v", err, took)
				}
			})
		}
		wg.Wait()
		close(thaw)
		time.Sleep(maxPause)
		if _, err := p.check(rule, "k", 1, 50*time.Millisecond); err != nil {
			t.Errorf("after a second: %v", err)
		}
	})
}

// A node that stops answers what it was asked, tells its peers, and is found
// again when it is back.
func TestFarewellAndReturn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table, rule := holding(testPartitions), tokens(t, 100)
		table.Learn(rule)
		p := newPair(t, &scripted{table, func(calls []owner.Call, results []owner.Result) {
			time.Sleep(10 * time.Millisecond)
			table.DecideFrame(wall(), calls, results)
		}})
		time.AfterFunc(5*time.Millisecond, func() { p.net.forget("owner:1"); p.stop() })
		if v, err := p.check(rule, "k", 1, time.Second); err != nil || !v.Allowed {
			t.Errorf("asked before the farewell: %+v, %v", v, err)
		}
		synctest.Wait()
		start := time.Now()
		if _, err := p.check(rule, "k", 1, time.Second); err != forward.ErrAbsent || time.Since(start) != 0 {
			t.Errorf("asked afterwards: %v after %v", err, time.Since(start))
		}
		time.Sleep(100 * time.Millisecond) // by now it is not tried often
		serve(t, serverConfig("owner", table), p.net.listen("owner:1"))
		p.pool.Peer(ownerMember) // it has joined: no wait for the next attempt
		time.Sleep(firstPause)
		synctest.Wait()
		if v, err := p.check(rule, "k", 1, 50*time.Millisecond); err != nil || v.Remaining != 98 {
			t.Errorf("after its return: %+v, %v", v, err)
		}
	})
}

// H55: the owner cannot be reached. Checks fail at once, no goroutine is left
// behind, and however many come, no more than the bound wait.
func TestH55Refused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := newPool(t, newNetwork().dial)
		peer := pool.Peer(ownerMember)
		rule := tokens(t, 1)
		synctest.Wait()
		before, start := runtime.NumGoroutine(), time.Now()
		for range 10_000 {
			if _, err := peer.Check(context.Background(), callOf(rule, "k", 1), within(50*time.Millisecond)); err != forward.ErrAbsent {
				t.Fatal(err)
			}
		}
		if n := runtime.NumGoroutine(); n > before+2 || time.Since(start) != 0 {
			t.Errorf("%d goroutines, before %d; took %v", n, before, time.Since(start))
		}
	})
}

// H55: the owner's address swallows everything. Checks wait for the connection
// until their deadline; once the attempt has failed, they fail at once.
func TestH55Silent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		silence := func(ctx context.Context, _ string) (net.Conn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		peer := newPool(t, silence).Peer(ownerMember)
		rule := tokens(t, 1)
		check := func() (time.Duration, error) {
			start := time.Now()
			_, err := peer.Check(context.Background(), callOf(rule, "k", 1), within(50*time.Millisecond))
			return time.Since(start), err
		}
		synctest.Wait()
		before := runtime.NumGoroutine()
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() {
				if took, err := check(); !errors.Is(err, forward.ErrTimeout) || took != 50*time.Millisecond {
					t.Errorf("at first: %v after %v", err, took)
				}
			})
		}
		wg.Wait()
		synctest.Wait()
		if n := runtime.NumGoroutine(); n > before+2 {
			t.Errorf("%d goroutines, before %d", n, before)
		}
		time.Sleep(connectTimeout)
		for range 100 {
			if took, err := check(); err != forward.ErrAbsent || took != 0 {
				t.Fatalf("after the attempt: %v after %v", err, took)
			}
		}
	})
}

// Each refusal names what is wrong, and the checks fail at once.
func TestRefusedStreams(t *testing.T) {
	for what, change := range map[string]func(*ServerConfig){
		"token": func(c *ServerConfig) { c.Token = "another" },
		"node":  func(c *ServerConfig) { c.Self = "someone-else" },
	} {
		synctest.Test(t, func(t *testing.T) {
			n, cfg := newNetwork(), serverConfig("owner", holding(testPartitions))
			change(&cfg)
			serve(t, cfg, n.listen("owner:1"))
			peer := newPool(t, n.dial).Peer(ownerMember)
			synctest.Wait()
			start := time.Now()
			_, err := peer.Check(context.Background(), callOf(tokens(t, 1), "k", 1), within(50*time.Millisecond))
			if err != forward.ErrAbsent || time.Since(start) != 0 {
				t.Errorf("%s: %v after %v", what, err, time.Since(start))
			}
		})
	}
}

// silentServer takes streams and never welcomes them.
type silentServer struct{ peerpb.UnimplementedPeerServer }

func (silentServer) Checks(stream grpc.BidiStreamingServer[peerpb.Frame, peerpb.Frame]) error {
	<-stream.Context().Done()
	return nil
}

// An owner that takes the stream and says nothing is given up after the connect
// timeout.
func TestOwnerNeverWelcomes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork()
		s := grpc.NewServer(serverOptions()...)
		peerpb.RegisterPeerServer(s, silentServer{})
		go s.Serve(n.listen("owner:1"))
		defer s.Stop()
		peer := newPool(t, n.dial).Peer(ownerMember)
		rule := tokens(t, 1)
		if _, err := peer.Check(context.Background(), callOf(rule, "k", 1), within(50*time.Millisecond)); !errors.Is(err, forward.ErrTimeout) {
			t.Errorf("at first: %v", err)
		}
		time.Sleep(connectTimeout)
		if _, err := peer.Check(context.Background(), callOf(rule, "k", 1), within(50*time.Millisecond)); err != forward.ErrAbsent {
			t.Errorf("later: %v", err)
		}
	})
}

// fickleServer answers one frame of each stream and breaks it.
type fickleServer struct {
	peerpb.UnimplementedPeerServer
	streams atomic.Int64
}

func (s *fickleServer) Checks(stream grpc.BidiStreamingServer[peerpb.Frame, peerpb.Frame]) error {
	s.streams.Add(1)
	if err := stream.SendHeader(welcome()); err != nil {
		return err
	}
	f, err := stream.Recv()
	if err != nil {
		return err
	}
	if err := stream.Send(&peerpb.Frame{Id: f.Id, Records: []byte{byte(full)}}); err != nil {
		return err
	}
	return errors.New("broken")
}

// A peer that answers one frame and breaks, again and again, is not dialled
// without pause.
func TestFicklePeerIsNotDialledWithoutPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, fickle := newNetwork(), &fickleServer{}
		s := grpc.NewServer(serverOptions()...)
		peerpb.RegisterPeerServer(s, fickle)
		go s.Serve(n.listen("owner:1"))
		defer s.Stop()
		peer, rule, start := newPool(t, n.dial).Peer(ownerMember), tokens(t, 1), time.Now()
		for range 100 {
			if _, err := peer.Check(context.Background(), callOf(rule, "k", 1), within(time.Second)); err == nil {
				t.Fatal("no error")
			}
		}
		took, streams := time.Since(start), fickle.streams.Load()
		if streams < 10 || streams > int64(took/spacing)+1 {
			t.Errorf("%d streams in %v", streams, took)
		}
	})
}

// A peer that goes in good order is nothing to warn of.
func TestFarewellIsNoFault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, logs := newNetwork(), &journal{}
		stop := serve(t, serverConfig("owner", holding(testPartitions)), n.listen("owner:1"))
		cfg := poolConfig(n.dial)
		cfg.Logger = logs.logger()
		pool := NewPool(cfg)
		defer pool.Close()
		if _, err := pool.Peer(ownerMember).Check(context.Background(), callOf(tokens(t, 1), "k", 1), within(time.Second)); err != nil {
			t.Fatal(err)
		}
		stop()
		synctest.Wait()
		if told := logs.take(); told != "" {
			t.Errorf("%s", told)
		}
		time.Sleep(firstPause)
		synctest.Wait()
		if !strings.Contains(logs.take(), "no stream to a peer") {
			t.Error("nobody is told that the peer stays away: the test tests nothing")
		}
	})
}

// A check that no frame can carry is refused before it is sent.
func TestChecksThatCannotTravel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, rule := newPair(t, holding(testPartitions)), tokens(t, 10)
		for what, c := range map[string]*owner.Call{
			"no name":    callOf(rule, "", 1),
			"long name":  callOf(rule, string(make([]byte, maxName+1)), 1),
			"cost 0":     callOf(rule, "k", 0),
			"large cost": callOf(rule, "k", limit.MaxCost+1),
		} {
			if _, err := p.peer.Check(context.Background(), c, within(time.Second)); !errors.Is(err, forward.ErrRejected) {
				t.Errorf("%s: %v", what, err)
			}
		}
		if v, err := p.check(rule, string(make([]byte, maxName)), 1, time.Second); err != nil || !v.Allowed {
			t.Errorf("the longest name: %+v, %v", v, err)
		}
	})
}
