package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// fleet is a cluster of `serve` processes. Node i's ports begin at base + 10·i, as
// those of `dev` do.
type fleet struct {
	t    *testing.T
	base int
	size int
}

// startFleet returns once every node sees all serve; the processes end with the
// test.
func startFleet(t *testing.T, size int) *fleet {
	f := &fleet{t: t, base: newPortRange().take(size * portsPerNode), size: size}
	for i := range size {
		args := []string{"serve", "--name", fmt.Sprint("node-", i), "--deadline", "10s"}
		for at, door := range []string{"--http", "--grpc", "--peer", "--gossip", "--admin"} {
			args = append(args, door, f.address(i, at))
		}
		if i > 0 {
			args = append(args, "--join", f.address(0, 3))
		}
		var log bytes.Buffer
		cmd := exec.Command("ringlimit", args...)
		cmd.Stderr = &log
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			cmd.Process.Kill()
			cmd.Wait()
			if t.Failed() {
				t.Logf("node-%d:\n%s", i, &log)
			}
		})
	}
	for i := range size {
		f.await("all serve", func() bool {
			status, body := f.ask("GET", i, 4, "/v1/members", "")
			return status == http.StatusOK && strings.Count(body, `"state":"serving"`) == size
		})
	}
	return f
}

func (f *fleet) address(node, door int) string {
	return fmt.Sprintf("127.0.0.1:%d", f.base+node*portsPerNode+door)
}

// ask is one request; a node that does not answer gives status 0.
func (f *fleet) ask(method string, node, door int, path, body string) (status int, answer string) {
	req, err := http.NewRequest(method, "http://"+f.address(node, door)+path, strings.NewReader(body))
	if err != nil {
		f.t.Fatal(err)
	}
	req.Close = true
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err.Error()
	}
	return resp.StatusCode, string(b)
}

// await asks until ok, as long as patience lasts.
func (f *fleet) await(what string, ok func() bool) {
	again := time.NewTicker(time.Millisecond)
	defer again.Stop()
	for deadline := time.Now().Add(patience); !ok(); <-again.C {
		if time.Now().After(deadline) {
			f.t.Errorf("waited in vain: %s", what)
			return
		}
	}
}

// put writes the default tier at a node: one rule with this limit an hour.
func (f *fleet) put(node int, algorithm string, limit int) {
	f.t.Helper()
	body := fmt.Sprintf(`{"rules":[{"name":"all","algorithm":%q,"limit":%d,"window":"1h"}]}`, algorithm, limit)
	if status, answer := f.ask("PUT", node, 4, "/v1/limits/default", body); status != http.StatusOK && status != http.StatusCreated {
		f.t.Fatalf("PUT: %d %s", status, answer)
	}
}

type told struct {
	Allowed          bool
	Limit, Remaining int
	Source           string
}

func (f *fleet) check(node int, fields string) (v told) {
	status, answer := f.ask("POST", node, 0, "/v1/check", "{"+fields+"}")
	if status == http.StatusOK && json.Unmarshal([]byte(answer), &v) != nil {
		f.t.Errorf("check: %d %s", status, answer)
	}
	return v
}

// inForce waits until checks at all nodes are judged by this limit.
func (f *fleet) inForce(limit int) {
	var all sync.WaitGroup
	for i := range f.size {
		all.Go(func() {
			f.await(fmt.Sprintf("limit %d at node-%d", limit, i), func() bool {
				return f.check(i, fmt.Sprintf(`"key":"seen at %d","peek":true`, i)).Limit == limit
			})
		})
	}
	all.Wait()
}

// How long a change takes from its PUT until checks at all of three processes are
// judged by it: the figures are in the log of this test (-v).
func TestAChangeReachesAllProcesses(t *testing.T) {
	f := startFleet(t, 3)
	var took []time.Duration
	for i := range 20 {
		begun := time.Now()
		f.put(i%3, "fixed_window", 1000+i)
		f.inForce(1000 + i)
		took = append(took, time.Since(begun).Round(100*time.Microsecond))
	}
	slices.Sort(took)
	t.Logf("%d changes: median %v, maximum %v", len(took), (took[9]+took[10])/2, took[19])
}

// What was used stays used, at each process: a raised limit helps at once, and a
// lowered one denies without going below zero.
func TestUsedStaysUsedInAllProcesses(t *testing.T) {
	f := startFleet(t, 3)
	for _, algorithm := range []string{"token_bucket", "fixed_window", "sliding_window_counter", "sliding_window_log"} {
		t.Run(algorithm, func(t *testing.T) {
			for _, c := range []struct {
				from, used, to int
				allowed        bool
				remaining      int
			}{{10_000, 10_000, 15_000, true, 5_000}, {100, 80, 50, false, 0}} {
				key := fmt.Sprintf("%s %d", algorithm, c.from)
				f.put(0, algorithm, c.from)
				f.inForce(c.from)
				if v := f.check(1, fmt.Sprintf(`"key":%q,"cost":%d`, key, c.used)); !v.Allowed || v.Remaining != c.from-c.used {
					t.Fatalf("%+v", v)
				}
				denied := f.check(2, fmt.Sprintf(`"key":%q,"cost":%d`, key, c.from-c.used+1)) // for its deny cache
				if denied.Allowed {
					t.Errorf("%+v", denied)
				}
				f.put(2, algorithm, c.to)
				f.inForce(c.to)
				for i := range f.size {
					v := f.check(i, fmt.Sprintf(`"key":%q,"peek":true`, key))
					// A token bucket has filled up a little meanwhile.
					if v.Allowed != c.allowed || v.Limit != c.to || v.Remaining < c.remaining || v.Remaining > c.remaining+c.to/100 {
						t.Errorf("node-%d: %+v, want allowed %v with %d of %d left", i, v, c.allowed, c.remaining, c.to)
					}
				}
				if c.allowed {
					if v := f.check(1, fmt.Sprintf(`"key":%q,"cost":%d`, key, c.remaining)); !v.Allowed {
						t.Errorf("what is left at once: %+v", v)
					}
				}
			}
		})
	}
}
