package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/ringlimit/ringlimit"
	streams "github.com/ringlimit/ringlimit/client"
	"github.com/ringlimit/ringlimit/rules"
)

// alone is an instance on free ports of loopback.
func alone() *instance {
	s := defaultSettings()
	s.name = "alone"
	for _, a := range []*string{&s.http, &s.grpc, &s.peer, &s.gossip, &s.admin} {
		*a = "127.0.0.1:0"
	}
	return &instance{settings: s, name: s.name, rules: new(rules.Set), log: slog.New(slog.DiscardHandler), audit: slog.New(slog.DiscardHandler)}
}

func TestHealthFollowsReadiness(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	up := make(chan string, 1)
	ended := make(chan error, 1)
	go func() {
		ended <- alone().run(ctx, func(_ *ringlimit.Node, d *doors) { up <- d.grpc.Addr().String() })
	}()
	conn, err := grpc.NewClient(<-up, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	watch, err := healthpb.NewHealthClient(conn).Watch(t.Context(), &healthpb.HealthCheckRequest{})
	if err != nil {
		t.Fatal(err)
	}
	expect(t, watch, healthpb.HealthCheckResponse_SERVING)
	_, err = healthpb.NewHealthClient(conn).Check(t.Context(), &healthpb.HealthCheckRequest{Service: "invented"})
	if err == nil {
		t.Error("a service that is not there has a health")
	}
	cancel()
	expect(t, watch, healthpb.HealthCheckResponse_NOT_SERVING)
	// The watch is still open; it must not hold up the end.
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("ended with %v", err)
		}
	case <-time.After(requestsTimeout / 2):
		t.Errorf("a watch holds up the end; after the requests' time it ended with %v", <-ended)
	}
}

// A stop ends the streams of clients in order: what they ask meanwhile is answered, and
// they do not hold it up.
func TestStopSaysFarewell(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	up := make(chan string, 1)
	ended := make(chan error, 1)
	go func() {
		ended <- alone().run(ctx, func(_ *ringlimit.Node, d *doors) { up <- d.grpc.Addr().String() })
	}()
	c, err := streams.New(streams.Config{Addresses: []string{<-up}, Timeout: patience})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for stopping := false; ; {
		v, err := c.Check(t.Context(), ringlimit.Request{Key: "k"})
		if stopping && errors.Is(err, streams.ErrUnavailable) {
			break
		}
		if err != nil || !v.Allowed {
			t.Fatalf("%+v, %v", v, err)
		}
		if !stopping {
			stopping = true
			cancel()
		}
	}
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("ended with %v", err)
		}
	case <-time.After(requestsTimeout / 2):
		t.Errorf("a stream holds up the end; after the requests' time it ended with %v", <-ended)
	}
}

// A node that stops being ready by itself says so at every door.
func TestHealthFollowsTheNode(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	up := make(chan *ringlimit.Node, 1)
	r, err := alone().open()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range r.servers {
		go s.serve()
	}
	ended := make(chan error, 1)
	go func() { ended <- r.live(ctx, func(n *ringlimit.Node, _ *doors) { up <- n }) }()
	node := <-up
	conn, err := grpc.NewClient(r.doors.grpc.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	soon, done := context.WithTimeout(t.Context(), patience)
	defer done()
	watch, err := healthpb.NewHealthClient(conn).Watch(soon, &healthpb.HealthCheckRequest{})
	if err != nil {
		t.Fatal(err)
	}
	expect(t, watch, healthpb.HealthCheckResponse_SERVING)
	if err := node.Leave(t.Context()); err != nil {
		t.Error(err)
	}
	expect(t, watch, healthpb.HealthCheckResponse_NOT_SERVING)
	cancel()
	<-ended
}

func expect(t *testing.T, watch healthpb.Health_WatchClient, want healthpb.HealthCheckResponse_ServingStatus) {
	t.Helper()
	got, err := watch.Recv()
	if err != nil || got.Status != want {
		t.Fatalf("health is %v, %v, want %v", got, err, want)
	}
}

// A door that breaks ends the whole instance, with its error.
func TestBrokenDoorEndsTheInstance(t *testing.T) {
	for name, door := range map[string]func(*doors) net.Listener{
		"http":  func(d *doors) net.Listener { return d.http },
		"grpc":  func(d *doors) net.Listener { return d.grpc },
		"admin": func(d *doors) net.Listener { return d.admin },
	} {
		err := alone().run(t.Context(), func(_ *ringlimit.Node, d *doors) { door(d).Close() })
		if err == nil || !strings.Contains(err.Error(), "closed") {
			t.Errorf("%s: ended with %v", name, err)
		}
	}
}

// An address in use leaves none of the others taken.
func TestDoorsOpenTogetherOrNotAtAll(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	s := defaultSettings()
	s.http, s.grpc, s.admin = freeAddress(t), freeAddress(t), l.Addr().String()
	if d, err := openDoors(s, nil); err == nil || !strings.Contains(err.Error(), "--admin: ") {
		t.Fatalf("got %v, %v", d, err)
	}
	for _, a := range []string{s.http, s.grpc} {
		again, err := net.Listen("tcp", a)
		if err != nil {
			t.Fatalf("%s is still taken: %v", a, err)
		}
		again.Close()
	}
}

// A node that cannot start closes the doors it has opened.
func TestFailedStartClosesTheDoors(t *testing.T) {
	i := alone()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	i.settings.http = freeAddress(t)
	i.settings.peer = l.Addr().String()
	if err := i.run(t.Context(), nil); err == nil || !strings.HasPrefix(err.Error(), "--peer: listen tcp") {
		t.Fatalf("ended with %v", err)
	}
	again, err := net.Listen("tcp", i.settings.http)
	if err != nil {
		t.Fatalf("the HTTP address is still taken: %v", err)
	}
	again.Close()
}

// A request that does not end takes the requests' time, and none of the goodbye's.
func TestLongRequestLeavesTimeForTheGoodbye(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var log lockedBuffer
	i := alone()
	i.log = slog.New(slog.NewTextHandler(&log, nil))
	i.requests = 50 * time.Millisecond
	up := make(chan string, 1)
	ended := make(chan error, 1)
	go func() {
		ended <- i.run(ctx, func(_ *ringlimit.Node, d *doors) { up <- d.http.Addr().String() })
	}()
	conn, err := net.Dial("tcp", <-up)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	// The 100 says that the check waits for its body; it never comes.
	io.WriteString(conn, "POST /v1/check HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 9\r\nExpect: 100-continue\r\n\r\n")
	if _, err := io.ReadFull(conn, make([]byte, len("HTTP/1.1 100"))); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("ended with %v", err)
	}
	if got := log.String(); !strings.Contains(got, "msg=left") || strings.Contains(got, "level=WARN") || strings.Contains(got, "level=ERROR") {
		t.Errorf("logged\n%s", got)
	}
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func TestHeadersAreBounded(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	up := make(chan string, 1)
	ended := make(chan error, 1)
	go func() {
		ended <- alone().run(ctx, func(_ *ringlimit.Node, d *doors) { up <- d.http.Addr().String() })
	}()
	req, err := http.NewRequest(http.MethodGet, "http://"+<-up+"/livez", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Close = true
	req.Header.Set("X-Large", strings.Repeat("x", 2*maxHeaderBytes))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		t.Error(err)
	}
	if resp.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("got %s", resp.Status)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("ended with %v", err)
	}
}
