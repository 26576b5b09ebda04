package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ringlimit/ringlimit"
	"github.com/ringlimit/ringlimit/front/grpcfront"
)

var errLeft = errors.New("7 partitions are left")

// leaver is a node that takes its time to give its counters away, and notes what
// is done to it. As a server it is one of its own doors.
type leaver struct {
	stand *standIn
	takes time.Duration // to hand over
	done  []string
	cut   bool // the goodbye had no time to drain any more
}

func (l *leaver) Drain(ctx context.Context) error {
	if l.stand.draining.Load() {
		l.done = append(l.done, "drain")
	}
	select {
	case <-time.After(l.takes):
		return nil
	case <-ctx.Done():
		return errLeft
	}
}

func (l *leaver) Leave(ctx context.Context) error {
	l.done = append(l.done, "leave")
	l.cut = ctx.Err() != nil
	return nil
}

func (l *leaver) serve() error         { return nil }
func (l *leaver) stop(context.Context) { l.done = append(l.done, "close") }

// The counters are handed over during the notice, so that the stop takes the
// longer of the two, and no more than what is allowed; the doors close after it.
func TestStopTakesTheLongerOfNoticeAndHandOver(t *testing.T) {
	for _, test := range []struct{ takes, want time.Duration }{
		{0, time.Second},
		{300 * time.Millisecond, time.Second},
		{4 * time.Second, 4 * time.Second},
		{time.Hour, 15 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := &running{instance: alone(), stand: &standIn{}, grpc: grpcServer{Server: grpcfront.New(grpcfront.Config{})}}
			r.notice = time.Second
			node := &leaver{stand: r.stand, takes: test.takes}
			r.servers = []server{node}
			began := time.Now()
			err := r.end(t.Context(), node)
			if took := time.Since(began); took != test.want {
				t.Errorf("handing over takes %v: the stop took %v, want %v", test.takes, took, test.want)
			}
			missed := test.takes > 15*time.Second
			if errors.Is(err, errLeft) != missed || node.cut != missed {
				t.Errorf("handing over takes %v: ended with %v; cut short: %v", test.takes, err, node.cut)
			}
			if !slices.Equal(node.done, []string{"drain", "close", "leave"}) {
				t.Errorf("in the order %q", node.done)
			}
		})
	}
}

// stuck is a node that cannot give its counters away, until it is told to give
// up.
type stuck struct {
	*ringlimit.Node
	draining chan<- struct{}
	giveUp   <-chan struct{}
}

func (s stuck) Drain(context.Context) error {
	close(s.draining)
	<-s.giveUp
	return errLeft
}

// While the counters are on their way the node answers. When they cannot all be
// handed over in time it leaves all the same, and says so.
func TestStopThatMissesItsTime(t *testing.T) {
	var log lockedBuffer
	i := alone()
	i.log = slog.New(slog.NewTextHandler(&log, nil))
	i.from = origins{"drain-timeout": "RINGLIMIT_DRAIN_TIMEOUT"}
	r, err := i.open()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range r.servers {
		go s.serve()
	}
	node, err := ringlimit.Start(t.Context(), r.config())
	if err != nil {
		t.Fatal(err)
	}
	r.stand.node.Store(node)
	draining, giveUp, ended := make(chan struct{}), make(chan struct{}), make(chan error)
	go func() { ended <- r.end(context.Background(), stuck{node, draining, giveUp}) }()
	<-draining
	url := "http://" + r.doors.http.Addr().String()
	if status, body, err := ask(http.MethodGet, url+"/readyz", ""); status != http.StatusServiceUnavailable {
		t.Errorf("/readyz: %v %s", err, body)
	}
	if status, body, err := ask(http.MethodPost, url+"/v1/check", `{"key":"k"}`); status != http.StatusOK || !strings.Contains(body, `"allowed":true`) {
		t.Errorf("a check while draining: %v %s", err, body)
	}
	close(giveUp)
	if err := <-ended; err == nil || err.Error() != "RINGLIMIT_DRAIN_TIMEOUT: not all counters were handed over in 15s: 7 partitions are left" {
		t.Errorf("ended with %v", err)
	}
	if got := log.String(); !strings.Contains(got, "level=ERROR") || !strings.Contains(got, `error="7 partitions are left"`) || !strings.Contains(got, "msg=left") {
		t.Errorf("logged\n%s", got)
	}
	if _, err := node.Check(t.Context(), ringlimit.Request{Key: "k"}); !errors.Is(err, ringlimit.ErrLeft) {
		t.Errorf("the node has not left: a check gives %v", err)
	}
	if _, _, err := ask(http.MethodGet, url+"/livez", ""); err == nil {
		t.Error("the door is still open")
	}
}

// A cluster that stops as a whole has nobody to hand its counters to, and waits
// for nobody.
func TestColdStop(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out, in := io.Pipe()
	defer out.Close()
	var stderr lockedBuffer
	code := make(chan int)
	args := []string{"dev", "--base-port", strconv.Itoa(newPortRange().take(30))}
	go func() { code <- run(ctx, args, func(string) (string, bool) { return "", false }, in, &stderr) }()
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	go io.Copy(io.Discard, out)
	began := time.Now()
	cancel()
	if got := <-code; got != exitOK {
		t.Errorf("exit code %d\n%s", got, &stderr)
	}
	took := time.Since(began)
	t.Logf("three nodes stopped in %v", took)
	if took > defaultSettings().drainTimeout/3 {
		t.Errorf("the nodes wait for each other: %v\n%s", took, &stderr)
	}
}

// A door whose clients do not go leaves the others their whole time to answer.
func TestDoorsCloseTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &running{instance: alone()}
		slow, next := &patientDoor{takes: time.Hour}, &patientDoor{takes: time.Second}
		r.servers = []server{slow, next}
		began := time.Now()
		r.closeDoors(t.Context())
		if took := time.Since(began); took != requestsTimeout || !slow.cut || next.cut {
			t.Errorf("took %v; the slow door was cut short: %v; the other: %v", took, slow.cut, next.cut)
		}
	})
}

// patientDoor has clients who take their time.
type patientDoor struct {
	takes time.Duration
	cut   bool
}

func (d *patientDoor) serve() error { return nil }
func (d *patientDoor) stop(ctx context.Context) {
	select {
	case <-time.After(d.takes):
	case <-ctx.Done():
	}
	d.cut = ctx.Err() != nil
}
