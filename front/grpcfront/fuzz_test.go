package grpcfront

import (
	"context"
	"io"
	"sync"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/ringlimit/ringlimit/internal/wire"
	"github.com/ringlimit/ringlimit/limit"
)

// line is a stream that brings the given messages and keeps what is sent.
type line struct {
	ctx  context.Context
	in   []string
	mu   sync.Mutex
	sent []string
}

func (l *line) Context() context.Context     { return l.ctx }
func (l *line) SendHeader(metadata.MD) error { return nil }
func (l *line) SetHeader(metadata.MD) error  { return nil }
func (l *line) SetTrailer(metadata.MD)       {}

func (l *line) RecvMsg(m any) error {
	if len(l.in) == 0 {
		return io.EOF
	}
	*m.(*wire.In) = wire.In(l.in[0])
	l.in = l.in[1:]
	return nil
}

func (l *line) SendMsg(m any) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sent = append(l.sent, string(*m.(*wire.Out)))
	return nil
}

// Whatever two messages a client sends, each of their calls is answered once, or the
// stream ends with INVALID_ARGUMENT.
func FuzzStream(f *testing.F) {
	good := wire.AppendCall(nil, 1, &limit.Request{Key: "k", Attributes: map[string]string{"a": "b"}}, false)
	f.Add(string(good), string(wire.AppendCall(good, 2, &limit.Request{}, true)))
	f.Add("", "\x0a\x01x")
	f.Fuzz(func(t *testing.T, one, two string) {
		s := New(config(limited(t, 1e6)))
		l := &line{ctx: t.Context(), in: []string{one, two}}
		err := s.checkStream(l)
		if err != nil && status.Code(err) != codes.InvalidArgument {
			t.Fatal(err)
		}
		want := map[uint64]int{}
		for _, m := range []string{one, two} {
			calls, _, bad := wire.ReadCalls(m, nil)
			if bad != nil {
				if err == nil {
					t.Fatalf("took %q", m)
				}
				return // what came before may or may not have been answered
			}
			for _, c := range calls {
				want[c.ID]++
			}
		}
		var rules wire.Rules
		for _, m := range l.sent {
			var r wire.Response
			if err := r.Read(m, &rules); err != nil {
				t.Fatal(err)
			}
			for _, reply := range r.Replies {
				want[reply.ID]--
			}
		}
		for id, n := range want {
			if n != 0 {
				t.Errorf("of call %d %d replies are missing", id, n)
			}
		}
	})
}
