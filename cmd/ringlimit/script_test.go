package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// patience is how long a script waits for what other processes do.
const patience = 30 * time.Second

// portRange hands out ports below those that the kernel gives to clients, so
// that a free one stays free.
type portRange struct {
	mu   sync.Mutex
	next int
}

func newPortRange() *portRange {
	return &portRange{next: 20000 + int(time.Now().UnixNano()/1000)%1000*10}
}

// command is `ports NAME COUNT`: sets NAME to the first of COUNT free ports,
// and NAME1, NAME2, … to those after it.
func (r *portRange) command(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: ports NAME COUNT")
	}
	count, err := strconv.Atoi(args[1])
	ts.Check(err)
	first := r.take(count)
	ts.Setenv(args[0], strconv.Itoa(first))
	for i := range count {
		ts.Setenv(args[0]+strconv.Itoa(i), strconv.Itoa(first+i))
	}
}

func (r *portRange) take(count int) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	for {
		first := r.next
		r.next += count
		if allFree(first, count) {
			return first
		}
	}
}

func allFree(first, count int) bool {
	for port := first; port < first+count; port++ {
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		l, err := net.Listen("tcp", address)
		if err != nil {
			return false
		}
		l.Close()
		p, err := net.ListenPacket("udp", address)
		if err != nil {
			return false
		}
		p.Close()
	}
	return true
}

// exits is `exits CODE ARGUMENT…`: runs a ringlimit command line inside the test
// and checks its exit code.
func exits(ts *testscript.TestScript, _ bool, args []string) {
	code := inProcess(ts, args[1:], ts.Stdout(), ts.Stderr())
	if strconv.Itoa(code) != args[0] {
		ts.Fatalf("exit code %d, want %s", code, args[0])
	}
}

func inProcess(ts *testscript.TestScript, args []string, stdout, stderr io.Writer) int {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	env := func(name string) (string, bool) { v := ts.Getenv(name); return v, v != "" }
	return run(ctx, args, env, stdout, stderr)
}

// eventually is `eventually PATTERN ARGUMENT…`: runs a ringlimit command line
// again and again until its output matches; with ! in front, until it no longer
// does.
func eventually(ts *testscript.TestScript, neg bool, args []string) {
	pattern, err := regexp.Compile(args[0])
	ts.Check(err)
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	deadline := time.After(patience)
	for {
		var stdout, stderr bytes.Buffer
		code := inProcess(ts, args[1:], &stdout, &stderr)
		if code == exitOK && pattern.Match(stdout.Bytes()) != neg {
			return
		}
		select {
		case <-again.C:
		case <-deadline:
			ts.Fatalf("waited in vain for %s; last was\n%s%s", pattern, &stdout, &stderr)
		}
	}
}

// capture is `capture NAME PATTERN`: sets NAME to what the pattern's group matches in
// the last command's stdout.
func capture(ts *testscript.TestScript, _ bool, args []string) {
	pattern, err := regexp.Compile("(?m)" + args[1])
	ts.Check(err)
	found := pattern.FindStringSubmatch(ts.ReadFile("stdout"))
	if len(found) != 2 {
		ts.Fatalf("%s is not once in the output", pattern)
	}
	ts.Setenv(args[0], found[1])
}

// httpCall is `http STATUS METHOD URL [BODY]`: asks until the status is right,
// as long as patience lasts, and prints the status line, the headers and the
// body to stdout.
func httpCall(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) < 3 {
		ts.Fatalf("usage: http STATUS METHOD URL [BODY]")
	}
	body := strings.Join(args[3:], " ")
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for deadline := time.Now().Add(patience); ; <-again.C {
		status, answer, err := ask(args[1], args[2], body)
		if err == nil && strconv.Itoa(status) == args[0] {
			fmt.Fprint(ts.Stdout(), answer)
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("%s %s: %v, want status %s\n%s", args[1], args[2], err, args[0], answer)
		}
	}
}

func ask(method, url, body string) (status int, answer string, err error) {
	req, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	req.Close = true
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	var b strings.Builder
	fmt.Fprintln(&b, resp.Status)
	resp.Header.Write(&b)
	_, err = io.Copy(&b, resp.Body)
	return resp.StatusCode, b.String(), err
}
