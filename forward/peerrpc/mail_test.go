package peerrpc

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/ringlimit/ringlimit/forward/peerrpc/parcel"
	"github.com/ringlimit/ringlimit/forward/peerrpc/peerpb"
	"github.com/ringlimit/ringlimit/limit"
	"github.com/ringlimit/ringlimit/membership"
	"github.com/ringlimit/ringlimit/owner"
	"github.com/ringlimit/ringlimit/owner/transfer"
)

// mailbox is what a node receives: signs of life by their time, other messages by kind.
type mailbox struct {
	mu   sync.Mutex
	got  []string
	hold func(transfer.Message) // called with each message first
}

func (b *mailbox) receive(from membership.NodeID, boot membership.BootID, m transfer.Message) {
	if b.hold != nil {
		b.hold(m)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	switch m := m.(type) {
	case *transfer.Beat:
		b.got = append(b.got, fmt.Sprint(m.At))
	case *transfer.BeatBack:
		b.got = append(b.got, fmt.Sprint(m.At))
	default:
		b.got = append(b.got, fmt.Sprintf("%s/%s %T", from, boot, m))
	}
}

func (b *mailbox) take() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	defer func() { b.got = nil }()
	return b.got
}

// newMailPair is an asker and a node with this mailbox, connected.
func newMailPair(t *testing.T, b *mailbox) *pair {
	cfg := serverConfig("owner", holding(testPartitions))
	cfg.Receive = b.receive
	p := newPairWith(t, cfg)
	synctest.Wait()
	return p
}

func (p *pair) beat(from, to int64) {
	for at := from; at < to; at++ {
		p.pool.Post(ownerMember, &transfer.Beat{At: at})
	}
}

// large posts numbered messages of 10 KB.
func (p *pair) large(from, to int64) {
	record := transfer.Record{ID: membership.NodeID(strings.Repeat("n", 250)), State: membership.Serving}
	for at := from; at < to; at++ {
		p.pool.Post(ownerMember, &transfer.BeatBack{At: at, Records: slices.Repeat([]transfer.Record{record}, 40)})
	}
}

// fill posts from 0 up to a node that receives nothing, until the windows on the
// way are full and some messages wait.
func (p *pair) fill() (posted int64) {
	for queue := p.peer.(*conn).mail.queue; len(queue) == 0; posted += 100 {
		p.large(posted, posted+100)
		synctest.Wait()
	}
	return posted
}

// counted is the numbers from…to-1 as a mailbox has them.
func counted(from, to int) (all []string) {
	for i := from; i < to; i++ {
		all = append(all, fmt.Sprint(i))
	}
	return all
}

func answersWith(rule *limit.Rule, names ...string) *transfer.Answers {
	m := &transfer.Answers{}
	for _, name := range names {
		id := owner.Seed(1).ID([]byte(name))
		m.Parts = append(m.Parts, transfer.Part{Partition: partitionOf(id.Hi), Pulled: true, Status: transfer.Held, Chunk: transfer.Chunk{
			Entries: []owner.Entry{{ID: id, Name: []byte(name), Rule: rule, State: limit.Shipped{A: 1}}},
		}})
	}
	return m
}

func TestMailArrives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &mailbox{}
		p := newMailPair(t, b)
		p.pool.Post(ownerMember, &transfer.Views{})
		p.beat(0, 3)
		synctest.Wait()
		if got, want := b.take(), append([]string{"asker/7 *transfer.Views"}, counted(0, 3)...); !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
		p.pool.Post(ownerMember, &transfer.Acquire{})
		p.pool.Post(ownerMember, answersWith(tokens(t, 3), "k", "l"))
		synctest.Wait()
		if got, want := b.take(), []string{"asker/7 *transfer.Acquire", "asker/7 *transfer.Answers"}; !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	})
}

// What a node takes long to receive of a hand-over holds up neither signs of life
// nor checks.
func TestBulkHoldsUpNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		thaw := make(chan struct{})
		b := &mailbox{hold: func(m transfer.Message) {
			if _, ok := m.(*transfer.Answers); ok {
				<-thaw
			}
		}}
		p := newMailPair(t, b)
		rule, long := tokens(t, 3), strings.Repeat("n", 30_000)
		for i := range 500 { // 15 MB, so that every window on the way is full
			p.pool.Post(ownerMember, answersWith(rule, fmt.Sprint(long, i)))
		}
		synctest.Wait()
		p.beat(0, 3)
		start := time.Now()
		if _, err := p.check(rule, "k", 1, time.Second); err != nil || time.Since(start) != 0 {
			t.Errorf("a check: %v after %v", err, time.Since(start))
		}
		synctest.Wait()
		if got := b.take(); !slices.Equal(got, counted(0, 3)) {
			t.Errorf("%q", got)
		}
		close(thaw)
		synctest.Wait()
		if got := b.take(); len(got) != 500 {
			t.Errorf("%d of 500 messages", len(got))
		}
	})
}

// A node that receives slowly costs the sender no time and bounded memory: what
// is posted when too much waits is lost, and nothing else.
func TestFullOutboxLosesTheNewest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		thaw := make(chan struct{})
		b := &mailbox{hold: func(transfer.Message) { <-thaw }}
		p := newMailPair(t, b)
		queue := p.peer.(*conn).mail.queue
		fits := p.fill() + int64(maxMail-len(queue))
		p.large(fits-int64(maxMail-len(queue)), fits+100)
		if len(queue) != maxMail {
			t.Errorf("%d messages wait", len(queue))
		}
		close(thaw)
		synctest.Wait()
		p.beat(-1, 0)
		synctest.Wait()
		got := b.take()
		if want := append(counted(0, int(fits)), "-1"); !slices.Equal(got, want) {
			t.Errorf("%d received, the last %q; want %d", len(got), got[len(got)-1], len(want))
		}
	})
}

func TestOutbox(t *testing.T) {
	rule := tokens(t, 3)
	full := func(o *outbox, m transfer.Message) (n int) {
		for o.post(m); len(o.queue) > n; o.post(m) {
			n = len(o.queue)
		}
		return n
	}
	o := newOutbox()
	if n := full(o, &transfer.Beat{}); n != fewMail {
		t.Errorf("%d messages wait for the first stream", n)
	}
	o.set(up)
	if n := full(o, &transfer.Beat{}); n != maxMail {
		t.Errorf("%d messages wait", n)
	}
	o.set(down)
	o.drop()
	if n := full(o, &transfer.Beat{}); n != 0 {
		t.Errorf("%d messages wait for a peer that is down", n)
	}
	o.set(up)
	large := answersWith(rule, strings.Repeat("n", 1<<20))
	large.Parts[0].Chunk.Entries[0].State.Log = make([]limit.Stamp, 1<<16)
	if n := full(o, large); n != maxMailBytes/(2<<20)-1 {
		t.Errorf("%d messages of 2 MiB wait", n)
	}
	if o.post(&transfer.Beat{}); len(o.queue) != maxMailBytes/(2<<20) {
		t.Error("a message without counters finds no room")
	}
	o.taken(<-o.queue)
	copies := &transfer.Replicate{Copies: []transfer.Copy{{Chunk: large.Parts[0].Chunk}}}
	if n := full(o, copies); n != maxMailBytes/(2<<20) {
		t.Errorf("%d messages after one was taken", n)
	}
	o.drop()
	larger := answersWith(rule, "k")
	larger.Parts[0].Chunk.Entries[0].State.Log = make([]limit.Stamp, maxMailBytes/16)
	if n := full(o, larger); n != 1 || o.bytes.Load() == 0 {
		t.Errorf("%d messages that are each larger than the bound", n)
	}
	if o.drop(); o.bytes.Load() != 0 {
		t.Errorf("%d bytes in an empty box", o.bytes.Load())
	}
}

// What waits when the connection breaks, and what is posted while there is none,
// is lost; a little may be posted before the first.
func TestMailIsLostWithTheConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		thaw := make(chan struct{})
		b := &mailbox{hold: func(transfer.Message) { <-thaw }}
		cfg := serverConfig("owner", holding(testPartitions))
		cfg.Receive = b.receive
		n := newNetwork()
		gate := make(chan struct{})
		p := &pair{net: n, pool: newPool(t, func(ctx context.Context, addr string) (net.Conn, error) {
			<-gate
			return n.dial(ctx, addr)
		})}
		p.beat(0, 3)
		stop := serve(t, cfg, n.listen("owner:1"))
		close(gate)
		for range 3 {
			thaw <- struct{}{} // those before the first connection arrive
		}
		p.beat(3, 100_000)
		stopped := make(chan struct{})
		go func() { stop(); close(stopped) }()
		n.forget("owner:1")
		n.cut()
		time.Sleep(spacing)
		synctest.Wait()
		c := p.pool.conns["owner"]
		if len(c.mail.queue) != 0 {
			t.Errorf("%d messages wait for the next connection", len(c.mail.queue))
		}
		p.beat(200_000, 200_100)
		close(thaw)
		<-stopped
		for _, at := range b.take() {
			if len(at) > 5 {
				t.Errorf("%s was posted while there was no connection", at)
			}
		}
		serve(t, cfg, n.listen("owner:1"))
		time.Sleep(2 * maxPause)
		p.beat(300_000, 300_001)
		synctest.Wait()
		if got := b.take(); !slices.Equal(got, []string{"300000"}) {
			t.Errorf("on the next connection: %q", got)
		}
	})
}

// A node that stops takes what was sent to it, and is not held up longer than
// that takes. What is posted afterwards is lost.
func TestStopTakesTheMailUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &mailbox{hold: func(transfer.Message) { time.Sleep(time.Millisecond) }}
		p := newMailPair(t, b)
		rule := tokens(t, 3)
		p.beat(0, 300)
		for range 200 {
			p.pool.Post(ownerMember, answersWith(rule, "k"))
		}
		synctest.Wait()
		start := time.Now()
		time.AfterFunc(100*time.Millisecond, func() { p.beat(1000, 2000) })
		p.stop()
		if took := time.Since(start); took < 299*time.Millisecond || took > 310*time.Millisecond {
			t.Errorf("it took %v", took)
		}
		got := b.take()
		beats := slices.DeleteFunc(slices.Clone(got), func(s string) bool { return strings.HasPrefix(s, "asker") })
		if len(got) != 500 || !slices.Equal(beats, counted(0, 300)) {
			t.Errorf("%d received, of them %d beats", len(got), len(beats))
		}
	})
}

// Also what waited at the sender when the node stopped.
func TestStopTakesTheMailThatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		thaw := make(chan struct{})
		b := &mailbox{hold: func(transfer.Message) { <-thaw }}
		p := newMailPair(t, b)
		posted := p.fill()
		time.AfterFunc(500*time.Millisecond, func() { close(thaw) })
		p.stop()
		if got := b.take(); !slices.Equal(got, counted(0, int(posted))) {
			t.Errorf("%d received of %d", len(got), posted)
		}
	})
}

// What waited when the connection broke is not sent on the next one.
func TestMailIsNotResent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		thaw := make(chan struct{})
		b := &mailbox{hold: func(transfer.Message) { <-thaw }}
		p := newMailPair(t, b)
		posted := p.fill()
		p.net.cut()
		time.Sleep(spacing)
		synctest.Wait()
		close(thaw)
		p.beat(posted, posted+1)
		synctest.Wait()
		got := b.take()
		if last := fmt.Sprint(posted); len(got) >= int(posted) || !slices.Contains(got, last) || slices.Contains(got, fmt.Sprint(posted-1)) {
			t.Errorf("%d received of %d", len(got), posted)
		}
	})
}

// Nor what waited when the stream ended by itself.
func TestMailIsNotCarriedOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		thaw := make(chan struct{})
		b := &mailbox{hold: func(transfer.Message) { <-thaw }}
		p := newMailPair(t, b)
		posted := p.fill()
		p.pool.Post(ownerMember, nil) // ends the stream
		p.beat(posted, posted+1)
		close(thaw)
		synctest.Wait()
		time.Sleep(spacing)
		p.beat(posted+1, posted+2)
		synctest.Wait()
		if got, want := b.take(), append(counted(0, int(posted)), fmt.Sprint(posted+1)); !slices.Equal(got, want) {
			t.Errorf("%d received, the last %q; want %d", len(got), got[len(got)-1], len(want))
		}
	})
}

// A peer that receives no more does not hold a node up for ever.
func TestStopIsNotHeldUpByMail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		thaw := make(chan struct{})
		cfg := serverConfig("owner", holding(testPartitions))
		n := newNetwork()
		s := NewServer(cfg)
		go s.Serve(n.listen("owner:1"))
		stream := rawMail(t, "owner:1", greeting(), grpc.WithContextDialer(n.dial))
		if _, err := stream.Header(); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		go func() {
			if _, err := stream.Recv(); err != nil { // the farewell, which is ignored
				t.Error(err)
			}
			close(thaw)
		}()
		s.Stop(context.Background())
		<-thaw
		if took := time.Since(start); took != farewellTime {
			t.Errorf("it took %v", took)
		}
	})
}

// rawMail opens a stream of mail with this metadata, below the client.
func rawMail(t *testing.T, addr string, md metadata.MD, opts ...grpc.DialOption) letters {
	t.Helper()
	opts = append(opts, grpc.WithTransportCredentials(insecure.NewCredentials()))
	cc, err := grpc.NewClient("passthrough:///"+addr, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cc.Close() })
	stream, err := peerpb.NewPeerClient(cc).Transfer(metadata.NewOutgoingContext(context.Background(), md))
	if err != nil {
		t.Fatal(err)
	}
	return stream
}

// Strangers, broken letters and too large ones end the stream with a clear
// status and a line in the log; the node receives nothing of them.
func TestBadMail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, b, logs := newNetwork(), &mailbox{}, &journal{}
		cfg := serverConfig("owner", holding(testPartitions))
		cfg.Receive, cfg.Logger = b.receive, logs.logger()
		now := wall()
		cfg.Now = func() int64 { now += int64(time.Second); return now }
		serve(t, cfg, n.listen("owner:1"))
		dial := grpc.WithContextDialer(n.dial)
		views := &peerpb.Letter{Message: &peerpb.Letter_Views{Views: &peerpb.Views{}}}
		for _, c := range []struct {
			what string
			md   metadata.MD
			send func(letters) error
			code codes.Code
			says string
		}{
			{"a stranger", greeting(tokenKey, "guess"), nil, codes.Unauthenticated, tokenKey},
			{"another node", greeting(nodeKey, `"x"`), nil, codes.FailedPrecondition, nodeKey},
			{"no run", greeting(bootKey, "-"), nil, codes.FailedPrecondition, bootKey},
			{"a broken letter", greeting(), func(s letters) error {
				return s.Send(&peerpb.Letter{Message: &peerpb.Letter_Drop{Drop: &peerpb.Drop{Partitions: []uint32{testPartitions}}}})
			}, codes.InvalidArgument, "partition 64"},
			{"none at all", greeting(), func(s letters) error { return s.SendMsg(rawBytes{0xff}) }, codes.Internal, "unmarshal"},
			{"a large one", greeting(), func(s letters) error {
				return s.Send(&peerpb.Letter{Rules: [][]byte{make([]byte, parcel.MaxLetter)}})
			}, codes.ResourceExhausted, fmt.Sprint(parcel.MaxLetter)},
		} {
			stream := rawMail(t, "owner:1", c.md, dial, grpc.WithDefaultCallOptions(grpc.ForceCodecV2(rawCodec{})))
			if c.send != nil {
				if err := c.send(stream); err != nil {
					t.Errorf("%s: %v", c.what, err)
				}
				_ = stream.Send(views) // not received any more
			}
			_, err := stream.Recv()
			if status.Code(err) != c.code || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s: %v", c.what, err)
			}
			synctest.Wait()
			if logged := logs.take(); !strings.Contains(logged, c.says) || !strings.Contains(logged, `peer="\"asker\""`) {
				t.Errorf("%s: logged %q", c.what, logged)
			}
		}
		if got := b.take(); len(got) != 0 {
			t.Errorf("received %q", got)
		}
		stream := rawMail(t, "owner:1", greeting(), dial)
		for _, letter := range []*peerpb.Letter{{}, views} { // one of a kind that is not known here is skipped
			if err := stream.Send(letter); err != nil {
				t.Fatal(err)
			}
		}
		stream.CloseSend()
		if _, err := stream.Recv(); err != io.EOF || len(b.take()) != 1 {
			t.Errorf("good mail: %v", err)
		}
	})
}

// A stream of mail that ends by itself is made anew, with the rules named anew.
// What cannot be packed is not sent.
func TestMailStreamIsMadeAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &mailbox{}
		p := newMailPair(t, b)
		rule := tokens(t, 3)
		copies := func() *transfer.Replicate {
			part := answersWith(rule, "k").Parts[0]
			return &transfer.Replicate{Copies: []transfer.Copy{{Partition: part.Partition, Chunk: part.Chunk}}}
		}
		for range 3 {
			p.pool.Post(ownerMember, copies())
			synctest.Wait()
			p.pool.Post(ownerMember, nil) // no letter
			synctest.Wait()
			time.Sleep(spacing)
			synctest.Wait()
			if got := b.take(); !slices.Equal(got, []string{"asker/7 *transfer.Replicate"}) {
				t.Errorf("%q", got)
			}
		}
		large := copies()
		entry := owner.Entry{Name: bytes.Repeat([]byte("n"), maxName), Rule: rule}
		large.Copies[0].Chunk.Entries = slices.Repeat([]owner.Entry{entry}, parcel.MaxLetter/maxName+1)
		p.pool.Post(ownerMember, large)
		synctest.Wait()
		p.pool.Post(ownerMember, copies())
		synctest.Wait()
		if got := b.take(); len(got) != 1 { // and it took no time: on the same stream
			t.Errorf("%q", got)
		}
	})
}

// Mail goes to the run of a node that is known last.
func TestMailToAnEarlierRunIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &mailbox{}
		p := newMailPair(t, b)
		next := ownerMember
		next.Boot++
		p.pool.Post(next, &transfer.Beat{At: 1})
		p.beat(2, 3)
		synctest.Wait()
		if got := b.take(); !slices.Equal(got, []string{"1"}) {
			t.Errorf("%q", got)
		}
		p.pool.Close()
		p.pool.Post(next, &transfer.Beat{At: 4})
		if len(p.pool.conns) != 0 {
			t.Error("a closed pool connects")
		}
	})
}
