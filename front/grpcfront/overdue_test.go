package grpcfront

import (
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/durationpb"

	ringlimitv1 "github.com/ringlimit/ringlimit/api/ringlimit/v1"
)

// Callers who had given up before their message left do not wait for ever.
func TestTimeoutThatIsOver(t *testing.T) {
	counters := limited(t, 2)
	s := converse(t, client(t, config(counters)))
	s.send(&ringlimitv1.CheckStreamRequest{
		Calls:   []*ringlimitv1.Call{{Id: 1, Call: &ringlimitv1.Call_Check{Check: &ringlimitv1.CheckRequest{Key: "late"}}}},
		Timeout: durationpb.New(-time.Millisecond),
	})
	if e := s.reply(1).GetError(); codes.Code(e.GetCode()) != codes.DeadlineExceeded || len(counters.requests()) != 0 {
		t.Errorf("answered %v, and judged %v", s.replies[1], counters.requests())
	}
	s.end()
}
