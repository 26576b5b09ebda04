package grpcfront

import (
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	ringlimitv1 "github.com/ringlimit/ringlimit/api/ringlimit/v1"
	"github.com/ringlimit/ringlimit/internal/wire"
	"github.com/ringlimit/ringlimit/limit"
)

// conversation is a stream as the generated client has it.
type conversation struct {
	t *testing.T
	grpc.BidiStreamingClient[ringlimitv1.CheckStreamRequest, ringlimitv1.CheckStreamResponse]
	replies  map[uint64]*ringlimitv1.Reply
	rules    map[uint32]*ringlimitv1.Rule
	taken    uint64
	farewell bool
}

func converse(t *testing.T, c ringlimitv1.RateLimiterClient) *conversation {
	t.Helper()
	stream, err := c.CheckStream(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return &conversation{t: t, BidiStreamingClient: stream, replies: map[uint64]*ringlimitv1.Reply{}, rules: map[uint32]*ringlimitv1.Rule{}}
}

// ask sends a message with a check for each key, numbered from id up.
func (c *conversation) ask(id uint64, keys ...string) {
	c.t.Helper()
	var m ringlimitv1.CheckStreamRequest
	for i, key := range keys {
		m.Calls = append(m.Calls, &ringlimitv1.Call{Id: id + uint64(i), Call: &ringlimitv1.Call_Check{Check: &ringlimitv1.CheckRequest{Key: key}}})
	}
	c.send(&m)
}

func (c *conversation) send(m *ringlimitv1.CheckStreamRequest) {
	c.t.Helper()
	if err := c.Send(m); err != nil {
		c.t.Fatal(err)
	}
}

// hear reads one message.
func (c *conversation) hear() error {
	m, err := c.Recv()
	if err != nil {
		return err
	}
	for _, r := range m.Rules {
		c.rules[r.Id] = r
	}
	for _, r := range m.Replies {
		if c.replies[r.Id] != nil {
			c.t.Errorf("call %d was answered twice", r.Id)
		}
		c.replies[r.Id] = r
	}
	c.taken, c.farewell = m.Taken, c.farewell || m.Farewell
	return nil
}

// verdict reads until the call is answered.
func (c *conversation) verdict(id uint64) *ringlimitv1.Verdict {
	c.t.Helper()
	if e := c.reply(id).GetError(); e != nil {
		c.t.Fatalf("call %d: %v", id, e)
	}
	return c.replies[id].GetVerdict()
}

func (c *conversation) reply(id uint64) *ringlimitv1.Reply {
	c.t.Helper()
	for c.replies[id] == nil {
		if err := c.hear(); err != nil {
			c.t.Fatalf("waiting for call %d: %v", id, err)
		}
	}
	return c.replies[id]
}

func (c *conversation) end() {
	c.t.Helper()
	if err := c.CloseSend(); err != nil {
		c.t.Error(err)
	}
	for {
		if err := c.hear(); err != nil {
			if err != io.EOF {
				c.t.Error(err)
			}
			return
		}
	}
}

func TestStream(t *testing.T) {
	s := converse(t, client(t, config(limited(t, 2))))
	s.ask(1, "a", "b", "a")
	s.send(&ringlimitv1.CheckStreamRequest{Calls: []*ringlimitv1.Call{
		{Id: 4, Call: &ringlimitv1.Call_Check{Check: &ringlimitv1.CheckRequest{Key: "c", Tier: "open"}}},
		{Id: 5, Call: &ringlimitv1.Call_Check{Check: &ringlimitv1.CheckRequest{Key: "d", Cost: proto.Int64(0)}}},
		{Id: 6, Call: &ringlimitv1.Call_Check{Check: &ringlimitv1.CheckRequest{Key: "d", Explain: true}}},
		{Id: 7},
	}})
	for id := range uint64(3) {
		v := s.verdict(id + 1)
		if r := s.rules[v.RuleId]; !v.Allowed || v.GetLimit() != 2 || r.GetName() != "global" || r.GetLimit() != 2 ||
			r.GetWindow().AsDuration() != time.Minute || r.GetAlgorithm() != "fixed_window" {
			t.Errorf("call %d: %v under %v", id+1, v, r)
		}
	}
	verdict(t, s.verdict(4), &ringlimitv1.Verdict{Allowed: true})
	for id, field := range map[uint64]string{5: "cost", 6: "explain", 7: "key"} {
		if e := s.reply(id).GetError(); e.GetField() != field || codes.Code(e.GetCode()) != codes.InvalidArgument || !strings.HasPrefix(e.GetMessage(), field+": ") {
			t.Errorf("call %d: %v", id, e)
		}
	}
	s.send(&ringlimitv1.CheckStreamRequest{Calls: []*ringlimitv1.Call{
		{Id: 8, Call: &ringlimitv1.Call_Refund{Refund: &ringlimitv1.RefundRequest{Key: "a", Cost: proto.Int64(2)}}},
	}})
	if v := s.verdict(8); v.GetRemaining() != 2 {
		t.Errorf("a refund gives %v", v)
	}
	if s.taken != 3 {
		t.Errorf("%d messages were read, and 3 sent", s.taken)
	}
	s.end()
}

// gate holds up the checks of some keys until it is opened.
type gate struct {
	keys []string
	open chan struct{}
}

func (g gate) pass(req limit.Request) error {
	if slices.Contains(g.keys, req.Key) {
		<-g.open
	}
	return nil
}

// A call that waits holds up neither the others of its message nor later ones.
func TestSlowCallsHoldUpNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		counters := limited(t, 100)
		g := gate{[]string{"slow"}, make(chan struct{})}
		counters.before = g.pass
		s := converse(t, client(t, config(counters)))
		began := time.Now()
		s.ask(1, "slow", "a", "b")
		s.ask(4, "slow")
		s.ask(5, "slow", "c")
		s.ask(7, "d")
		for _, id := range []uint64{2, 3, 6, 7} {
			s.verdict(id)
		}
		if took := time.Since(began); took > 2*maxHold {
			t.Errorf("the others took %v", took)
		}
		if s.replies[1] != nil || s.taken != 4 {
			t.Errorf("read %d messages, and answered %v", s.taken, s.replies)
		}
		close(g.open)
		for _, id := range []uint64{1, 4, 5} {
			s.verdict(id)
		}
		s.end()
	})
}

// Replies wait for others of their message, but not for long.
func TestRepliesAreNotHeldForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		counters := limited(t, 100)
		g := gate{[]string{"slow"}, make(chan struct{})}
		counters.before = g.pass
		s := converse(t, client(t, config(counters)))
		began := time.Now()
		s.ask(1, "a", "slow", "b")
		s.verdict(1)
		s.verdict(3)
		if took := time.Since(began); took != maxHold {
			t.Errorf("they took %v", took)
		}
		close(g.open)
		s.verdict(2)
		s.end()
	})
}

// The node says that it has read messages also when it has no answer yet: else its
// client would send no more.
func TestReadingIsAcknowledged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		counters := limited(t, 100)
		g := gate{[]string{"slow"}, make(chan struct{})}
		counters.before = g.pass
		s := converse(t, client(t, config(counters)))
		s.ask(1, "slow")
		s.ask(2, "slow")
		if err := s.hear(); err != nil || s.taken != 2 || len(s.replies) != 0 {
			t.Errorf("read %d, answered %v, %v", s.taken, s.replies, err)
		}
		close(g.open)
		s.verdict(1)
		s.verdict(2)
		s.end()
	})
}

// However much a client asks, the node keeps a bounded part of it.
func TestBackpressure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		counters := limited(t, 1e6)
		g := gate{[]string{"slow"}, make(chan struct{})}
		counters.before = g.pass
		server, cc := serve(t, config(counters))
		s := converse(t, ringlimitv1.NewRateLimiterClient(cc))
		keys := slices.Repeat([]string{"slow"}, 512)
		const messages = 40
		var sending sync.WaitGroup
		sending.Go(func() {
			for i := range messages {
				s.ask(uint64(1+i*512), keys...)
			}
		})
		synctest.Wait()
		for st := range server.calls.streams {
			if kept := st.replies.outstanding; kept > maxOutstanding {
				t.Errorf("%d bytes are kept", kept)
			}
			if st.workers.n > maxWorkers {
				t.Errorf("%d workers", st.workers.n)
			}
		}
		close(g.open)
		for len(s.replies) < messages*512 {
			if err := s.hear(); err != nil {
				t.Fatal(err)
			}
		}
		sending.Wait()
		s.end()
		if got := len(counters.requests()); got != messages*512 {
			t.Errorf("%d checks were made", got)
		}
	})
}

// Calls whose callers have given up while they queued are charged to nobody.
func TestOverdueCallsAreNotJudged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		counters := limited(t, 1e6)
		g := gate{[]string{"slow"}, make(chan struct{})}
		counters.before = g.pass
		cfg := config(counters)
		cfg.Now = time.Now
		s := converse(t, client(t, cfg))
		for i := range maxWorkers { // every worker waits
			s.ask(uint64(1000+i), "slow")
		}
		synctest.Wait()
		s.send(&ringlimitv1.CheckStreamRequest{
			Calls:   []*ringlimitv1.Call{{Id: 1, Call: &ringlimitv1.Call_Check{Check: &ringlimitv1.CheckRequest{Key: "late"}}}},
			Timeout: durationpb.New(50 * time.Millisecond),
		})
		time.Sleep(51 * time.Millisecond)
		close(g.open)
		if e := s.reply(1).GetError(); codes.Code(e.GetCode()) != codes.DeadlineExceeded {
			t.Errorf("answered %v", s.replies[1])
		}
		s.end()
		for _, req := range counters.requests() {
			if req.Key == "late" {
				t.Error("it was judged")
			}
		}
	})
}

// A message that is none ends the stream.
func TestBadMessages(t *testing.T) {
	_, cc := serve(t, config(limited(t, 2)))
	var large ringlimitv1.CheckStreamRequest
	for range wire.MaxCalls + 1 {
		large.Calls = append(large.Calls, &ringlimitv1.Call{})
	}
	many, err := proto.Marshal(&large)
	if err != nil {
		t.Fatal(err)
	}
	for name, message := range map[string]wire.Out{"cut short": wire.Out("\x0a\x05x"), "no call": wire.Out("\x0a\x01x"), "too many calls": many} {
		stream, err := cc.NewStream(t.Context(), &grpc.StreamDesc{ServerStreams: true, ClientStreams: true},
			"/"+serviceName+"/CheckStream", grpc.ForceCodecV2(wire.Codec()))
		if err != nil {
			t.Fatal(err)
		}
		if err := stream.SendMsg(&message); err != nil {
			t.Fatal(err)
		}
		if err := stream.RecvMsg(new(wire.In)); status.Code(err) != codes.InvalidArgument {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The client goes in the middle: what was read is judged, and nothing is left.
func TestBrokenStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		counters := limited(t, 100)
		g := gate{[]string{"slow"}, make(chan struct{})}
		counters.before = g.pass
		server, cc := serve(t, config(counters))
		s := converse(t, ringlimitv1.NewRateLimiterClient(cc))
		s.ask(1, "slow", "a")
		synctest.Wait()
		cc.Close()
		synctest.Wait()
		close(g.open)
		synctest.Wait()
		if n := len(server.calls.streams); n != 0 {
			t.Errorf("%d streams are left", n)
		}
		if got := len(counters.requests()); got != 2 {
			t.Errorf("%d checks were judged, want both", got)
		}
	})
}

// Many messages of many calls, some slow: each call has one reply.
func TestStress(t *testing.T) {
	counters := limited(t, 1e6)
	counters.before = func(req limit.Request) error {
		if strings.HasSuffix(req.Key, "7") {
			runtime.Gosched()
		}
		return nil
	}
	s := converse(t, client(t, config(counters)))
	const messages, calls = 100, 64
	go func() {
		for m := range messages {
			var keys []string
			for i := range calls {
				keys = append(keys, fmt.Sprint("key-", m*calls+i))
			}
			s.ask(uint64(1+m*calls), keys...)
		}
		_ = s.CloseSend()
	}()
	for s.hear() == nil {
	}
	if len(s.replies) != messages*calls {
		t.Errorf("%d replies, want %d", len(s.replies), messages*calls)
	}
}
