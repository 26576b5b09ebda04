package peerrpc

import (
	"context"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"

	"github.com/ringlimit/ringlimit/forward"
	"github.com/ringlimit/ringlimit/forward/peerrpc/peerpb"
	"github.com/ringlimit/ringlimit/membership"
	"github.com/ringlimit/ringlimit/owner"
)

// refusals that a pool has told, with the time since begin.
type witness struct {
	begin time.Time
	mu    sync.Mutex
	ids   []membership.NodeID
	at    []time.Duration
}

func (w *witness) refused(id membership.NodeID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ids, w.at = append(w.ids, id), append(w.at, time.Since(w.begin))
}

func (w *witness) take() (ids []membership.NodeID, at []time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	ids, at, w.ids, w.at = w.ids, w.at, nil, nil
	return ids, at
}

func witnessed(t testing.TB, dial func(context.Context, string) (net.Conn, error)) (*Pool, *witness) {
	w := &witness{begin: time.Now()}
	cfg := poolConfig(dial)
	cfg.Refused = w.refused
	p := NewPool(cfg)
	t.Cleanup(func() { p.Close() })
	return p, w
}

// A process that dies is noticed at once, though nobody asks it anything just
// then, and again and again; checks that were under way may have been counted,
// and those that were not sent can be asked of another.
func TestDeadProcessIsNoticedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, rule := newNetwork(), tokens(t, 1)
		thaw := make(chan struct{})
		serve(t, serverConfig("owner", &scripted{knowing(rule).Table, func([]owner.Call, []owner.Result) { <-thaw }}), n.listen("owner:1"))
		p, w := witnessed(t, n.dial)
		peer := p.Peer(ownerMember)
		time.Sleep(spacing)
		n.forget("owner:1")
		w.begin = time.Now()
		var unreachable, absent atomic.Int64
		var wg sync.WaitGroup
		for i := range 10 {
			wg.Go(func() {
				time.Sleep(time.Duration(i) * 100 * time.Microsecond) // more frames than may be in flight
				switch _, err := peer.Check(context.Background(), callOf(rule, "k", 1), within(time.Second)); err {
				case forward.ErrUnreachable:
					unreachable.Add(1)
				case forward.ErrAbsent:
					absent.Add(1)
				default:
					t.Error(err)
				}
				if took := time.Since(w.begin); took != 2*time.Millisecond {
					t.Errorf("told after %v", took)
				}
			})
		}
		time.Sleep(2 * time.Millisecond)
		n.cut()
		wg.Wait()
		close(thaw)
		if unreachable.Load() == 0 || absent.Load() == 0 || unreachable.Load()+absent.Load() != 10 {
			t.Errorf("%d unreachable, %d absent", unreachable.Load(), absent.Load())
		}
		if ids, at := w.take(); len(ids) != 1 || ids[0] != "owner" || at[0] != 2*time.Millisecond {
			t.Errorf("refused: %v at %v", ids, at)
		}
		time.Sleep(3 * time.Second)
		if ids, _ := w.take(); len(ids) < 8 || len(ids) > 15 {
			t.Errorf("refused %d times more in three seconds", len(ids))
		}
	})
}

// A connection without checks that breaks is made anew at once, and nothing is
// said against the peer.
func TestIdleConnectionComesBackAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, rule := newNetwork(), tokens(t, 9)
		serve(t, serverConfig("owner", holding(testPartitions)), n.listen("owner:1"))
		p, w := witnessed(t, n.dial)
		peer := p.Peer(ownerMember)
		time.Sleep(spacing)
		start := time.Now()
		n.cut()
		if _, err := peer.Check(context.Background(), callOf(rule, "k", 1), within(time.Second)); err != nil && err != forward.ErrUnreachable {
			t.Error(err) // unreachable when it was sent before the break was seen
		}
		if _, err := peer.Check(context.Background(), callOf(rule, "k", 1), within(time.Second)); err != nil || time.Since(start) != 0 {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		if ids, _ := w.take(); len(ids) != 0 {
			t.Errorf("refused: %v", ids)
		}
	})
}

// welcoming takes a stream and breaks it, having answered nothing.
type welcoming struct {
	peerpb.UnimplementedPeerServer
	streams atomic.Int64
}

func (s *welcoming) Checks(stream grpc.BidiStreamingServer[peerpb.Frame, peerpb.Frame]) error {
	s.streams.Add(1)
	return stream.SendHeader(welcome())
}

// A peer that takes each stream and breaks it is not dialled without pause, nor
// is the log filled with it.
func TestPeerThatBreaksEachStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, peer, logs := newNetwork(), &welcoming{}, &journal{}
		s := grpc.NewServer(serverOptions()...)
		peerpb.RegisterPeerServer(s, peer)
		go s.Serve(n.listen("owner:1"))
		defer s.Stop()
		cfg := poolConfig(n.dial)
		cfg.Logger = logs.logger()
		p := NewPool(cfg)
		defer p.Close()
		p.Peer(ownerMember)
		time.Sleep(time.Second)
		if n := peer.streams.Load(); n < 10 || n > int64(time.Second/spacing)+1 {
			t.Errorf("%d streams in a second", n)
		}
		if told := logs.take(); len(told) == 0 || len(told) > 1000 {
			t.Errorf("%d bytes of log", len(told))
		}
	})
}

// parting says farewell on its first stream of checks, and takes no mail.
type parting struct {
	peerpb.UnimplementedPeerServer
	streams atomic.Int64
}

func (s *parting) Checks(stream grpc.BidiStreamingServer[peerpb.Frame, peerpb.Frame]) error {
	if err := stream.SendHeader(welcome()); err != nil || s.streams.Add(1) > 1 {
		return err
	}
	if err := stream.Send(&peerpb.Frame{Id: farewell}); err != nil {
		return err
	}
	if _, err := stream.Recv(); err != io.EOF {
		return err
	}
	return nil
}

// A farewell ends the connection also when there never was a stream of mail: one
// that begins while the peer stops may be refused.
func TestFarewellWithoutMail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, peer := newNetwork(), &parting{}
		s := grpc.NewServer(serverOptions()...)
		peerpb.RegisterPeerServer(s, peer)
		go s.Serve(n.listen("owner:1"))
		defer s.Stop()
		p := newPool(t, n.dial)
		p.Peer(ownerMember)
		time.Sleep(time.Second)
		if peer.streams.Load() < 2 {
			t.Error("the connection stays")
		}
		p.Close()
	})
}

// Silence is no refusal, however often it is tried.
func TestSilenceIsNoRefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		silence := func(ctx context.Context, _ string) (net.Conn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		logs, w := &journal{}, &witness{}
		cfg := poolConfig(silence)
		cfg.Refused, cfg.Logger = w.refused, logs.logger()
		p := NewPool(cfg)
		p.Peer(ownerMember)
		p.Probe(ownerMember)
		time.Sleep(10 * time.Second)
		if ids, _ := w.take(); len(ids) != 0 {
			t.Errorf("refused: %v", ids)
		}
		if told := logs.take(); !strings.Contains(told, errSilent.Error()) {
			t.Errorf("told %q", told)
		}
		p.Close()
	})
}

// An attempt is one connection: gRPC makes no other behind it.
func TestDialerConnectsOnce(t *testing.T) {
	dials := 0
	d := dialer{dial: func(context.Context, string) (net.Conn, error) {
		if dials++; dials == 1 {
			return nil, errSilent
		}
		return nil, nil
	}}
	for i, want := range []error{errSilent, nil, errMade, errMade} {
		if _, err := d.connect(context.Background(), "x"); err != want {
			t.Errorf("attempt %d: %v", i, err)
		}
	}
	if dials != 2 {
		t.Errorf("dialled %d times", dials)
	}
}

// Whoever asks for a peer with each check does not make it be dialled with each.
func TestHurryIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, w := witnessed(t, newNetwork().dial)
		for range 1000 {
			p.Peer(ownerMember)
			time.Sleep(100 * time.Microsecond)
		}
		if ids, _ := w.take(); len(ids) < 30 || len(ids) > 51 {
			t.Errorf("dialled %d times in 100 ms", len(ids))
		}
	})
}

// What the operating system says of a port that nobody listens at is a refusal.
func TestRefusalOfARealPort(t *testing.T) {
	l := loopback(t)
	addr := l.Addr().String()
	l.Close()
	told := make(chan membership.NodeID, 100)
	cfg := poolConfig(nil)
	cfg.Refused = func(id membership.NodeID) {
		select {
		case told <- id:
		default:
		}
	}
	p := NewPool(cfg)
	defer p.Close()
	p.Probe(membership.Member{ID: "probed", Peer: addr})
	if id := <-told; id != "probed" {
		t.Errorf("refused by %q", id)
	}
	p.Peer(membership.Member{ID: "dialled", Peer: addr})
	if id := <-told; id != "dialled" {
		t.Errorf("refused by %q", id)
	}
}

// A probe dials whatever the pool's own connection is like, once at a time, and
// leaves nothing behind.
func TestProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, gate := newNetwork(), make(chan struct{})
		var dials atomic.Int64
		serve(t, serverConfig("owner", holding(testPartitions)), n.listen("owner:1"))
		p, w := witnessed(t, func(ctx context.Context, addr string) (net.Conn, error) {
			if dials.Add(1) > 2 { // beyond the connection and its lane
				<-gate
			}
			return n.dial(ctx, addr)
		})
		peer := p.Peer(ownerMember)
		synctest.Wait()
		n.forget("owner:1") // the connection stands on
		for range 100 {
			p.Probe(ownerMember)
		}
		synctest.Wait()
		if dials.Load() != 3 {
			t.Errorf("dialled %d times", dials.Load())
		}
		p.Probe(membership.Member{ID: "another", Peer: "x"})
		synctest.Wait()
		if dials.Load() != 4 {
			t.Error("one probe keeps another member from being probed")
		}
		close(gate)
		synctest.Wait()
		if ids, _ := w.take(); len(ids) != 2 {
			t.Errorf("refused: %v", ids)
		}
		if _, err := peer.Check(context.Background(), callOf(tokens(t, 1), "k", 1), within(time.Second)); err != nil {
			t.Errorf("over the connection that stands: %v", err)
		}
		p.Probe(ownerMember)
		synctest.Wait()
		if ids, _ := w.take(); len(ids) != 1 {
			t.Errorf("probed again: %v", ids)
		}
		p.Close()
		p.Probe(ownerMember)
		synctest.Wait()
		if ids, _ := w.take(); len(ids) != 0 {
			t.Error("a closed pool probes")
		}
	})
}

// Closing the pool ends a probe that hears nothing.
func TestCloseEndsProbes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPool(poolConfig(func(ctx context.Context, _ string) (net.Conn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}))
		p.Probe(ownerMember)
		start := time.Now()
		if p.Close(); time.Since(start) != 0 {
			t.Errorf("it took %v", time.Since(start))
		}
	})
}

// Who hears of a refusal may change what the pool holds.
func TestRefusedMayUseThePool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := poolConfig(newNetwork().dial)
		var p *Pool
		var called atomic.Int64
		cfg.Refused = func(membership.NodeID) {
			if called.Add(1) > 1 {
				return
			}
			p.Retain(nil)
			p.Post(ownerMember, nil)
			p.Peer(ownerMember)
			p.Probe(membership.Member{ID: "x", Peer: "owner:1"})
		}
		p = NewPool(cfg)
		p.Peer(ownerMember)
		time.Sleep(time.Millisecond)
		p.Close()
		if called.Load() < 3 {
			t.Errorf("told %d times", called.Load())
		}
	})
}

// Checks that a farewell finds unsent are told at once that they may ask another,
// while those that were sent get their answers.
func TestFarewellFindsChecksUnsent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rule := tokens(t, 1)
		table := knowing(rule)
		p := newPair(t, &scripted{table.Table, func(calls []owner.Call, results []owner.Result) {
			time.Sleep(10 * time.Millisecond)
			table.DecideFrame(0, calls, results)
		}})
		synctest.Wait()
		start := time.Now()
		var answered, absent atomic.Int64
		var wg sync.WaitGroup
		for i := range 10 {
			wg.Go(func() {
				time.Sleep(time.Duration(i) * 100 * time.Microsecond)
				switch _, err := p.check(rule, "k", 1, time.Second); {
				case err == nil && time.Since(start) >= 10*time.Millisecond:
					answered.Add(1)
				case err == forward.ErrAbsent && time.Since(start) == 5*time.Millisecond:
					absent.Add(1)
				default:
					t.Errorf("%v after %v", err, time.Since(start))
				}
			})
		}
		time.Sleep(5 * time.Millisecond)
		p.stop()
		wg.Wait()
		if answered.Load() == 0 || absent.Load() == 0 {
			t.Errorf("%d answered, %d absent", answered.Load(), absent.Load())
		}
	})
}
