package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// fleet is a cluster of `serve` processes. Node i's ports begin at base + 10·i, as
// those of `dev` do.
type fleet struct {
	t     *testing.T
	base  int
	size  int         // how many of them run
	nodes []*exec.Cmd // nil: not running
	logs  []lockedBuffer
	// more is what a node is started with besides; nil: nothing.
	more func(node int) []string
}

// newFleet has the addresses of size nodes, of which none runs yet. What runs ends
// with the test.
func newFleet(t *testing.T, size int, more func(node int) []string) *fleet {
	f := &fleet{t: t, base: newPortRange().take(size * portsPerNode), nodes: make([]*exec.Cmd, size), logs: make([]lockedBuffer, size), more: more}
	t.Cleanup(func() {
		for i := range size {
			f.end(i, syscall.SIGKILL)
			if t.Failed() {
				t.Logf("node-%d:\n%s", i, f.logs[i].String())
			}
		}
	})
	return f
}

// startFleet returns once every node sees all serve.
func startFleet(t *testing.T, size int, more func(node int) []string) *fleet {
	f := newFleet(t, size, more)
	f.startAll(size)
	return f
}

// startAll starts the first nodes, and waits until each of them sees all serve.
func (f *fleet) startAll(size int) {
	f.size = size
	for i := range size {
		f.start(i)
	}
	for i := range size {
		f.await("all serve", func() bool {
			status, body := f.ask("GET", i, 4, "/v1/members", "")
			return status == http.StatusOK && strings.Count(body, `"state":"serving"`) == size
		})
	}
}

// start starts a node; the others may be running or not.
func (f *fleet) start(node int) {
	args := []string{"serve", "--name", fmt.Sprint("node-", node), "--deadline", "10s"}
	for at, door := range []string{"--http", "--grpc", "--peer", "--gossip", "--admin"} {
		args = append(args, door, f.address(node, at))
	}
	if node > 0 {
		args = append(args, "--join", f.address(0, 3))
	}
	if f.more != nil {
		args = append(args, f.more(node)...)
	}
	cmd := exec.Command("ringlimit", args...)
	cmd.Stderr = &f.logs[node]
	if err := cmd.Start(); err != nil {
		f.t.Fatal(err)
	}
	f.nodes[node] = cmd
}

// end ends a node by a signal, if it runs.
func (f *fleet) end(node int, by syscall.Signal) {
	if cmd := f.nodes[node]; cmd != nil {
		_ = cmd.Process.Signal(by) // it may have ended by itself
		_ = cmd.Wait()
		f.nodes[node] = nil
	}
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
	f := startFleet(t, 3, nil)
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
	f := startFleet(t, 3, nil)
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
				for i := range f.size { // for their deny caches
					if v := f.check(i, fmt.Sprintf(`"key":%q,"cost":%d`, key, c.from-c.used+c.from/10)); v.Allowed {
						t.Errorf("node-%d: %+v", i, v)
					}
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
				for i, cost := range []int{c.remaining / 5, c.remaining / 5 * 2, c.remaining / 5 * 2} { // what is left at once, through each
					v := f.check(i, fmt.Sprintf(`"key":%q,"cost":%d`, key, max(cost, 1)))
					if v.Allowed != c.allowed || v.Limit != c.to || !c.allowed && v.Remaining != 0 {
						t.Errorf("node-%d: cost %d: %+v, want allowed %v", i, cost, v, c.allowed)
					}
				}
			}
		})
	}
}

// fileOf is a rule file whose default tier has this limit an hour.
func fileOf(t *testing.T, limit int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "rules.yaml")
	text := fmt.Sprintf("tiers: {default: [{name: all, algorithm: fixed_window, limit: %d, window: 1h}]}\n", limit)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// versions are those that a node's members list, by id; and its own metric.
func (f *fleet) versions(node int) (members map[string]uint64, own string) {
	var list struct {
		Members []struct {
			ID           string
			RulesVersion uint64 `json:"rules_version"`
		}
	}
	_, body := f.ask("GET", node, 4, "/v1/members", "")
	if err := json.Unmarshal([]byte(body), &list); err != nil {
		f.t.Errorf("members: %v: %s", err, body)
	}
	members = map[string]uint64{}
	for _, m := range list.Members {
		members[m.ID] = m.RulesVersion
	}
	_, metrics := f.ask("GET", node, 4, "/metrics", "")
	for line := range strings.Lines(metrics) {
		if value, ok := strings.CutPrefix(line, "ringlimit_rules_version "); ok {
			own = strings.TrimSpace(value)
		}
	}
	return members, own
}

// enforces says that checks at a node are judged by this limit, and that all nodes
// are known to have rules of this version.
func (f *fleet) enforces(limit int, version uint64) {
	f.t.Helper()
	f.inForce(limit)
	for i := range f.size {
		f.await(fmt.Sprintf("version %d of all at node-%d", version, i), func() bool {
			members, own := f.versions(i)
			for _, v := range members {
				if v != version {
					return false
				}
			}
			return len(members) == f.size && own == fmt.Sprint(version)
		})
	}
}

// A node that joins is ready with the cluster's rules: the first check that it
// answers is judged by them, whatever its own file says.
func TestAProcessThatJoinsHasTheRulesBeforeItIsReady(t *testing.T) {
	limits := []int{10, 10, 20}
	f := newFleet(t, 3, func(i int) []string { return []string{"--rules", fileOf(t, limits[i])} })
	f.startAll(2)
	f.put(1, "fixed_window", 77)
	f.enforces(77, 1)
	f.start(2)
	unready := 0
	f.await("the third is ready", func() bool {
		status, _ := f.ask("GET", 2, 0, "/readyz", "")
		if status == http.StatusServiceUnavailable {
			unready++
		}
		return status == http.StatusOK
	})
	if v := f.check(2, `"key":"k"`); v.Limit != 77 {
		t.Errorf("ready, and judges by %+v", v)
	}
	if unready == 0 {
		t.Error("it was never seen to be unready: this test shows less than it should")
	}
	f.size = 3
	f.enforces(77, 1)
}

// What was written outlives that all processes end at once, by SIGTERM or by
// SIGKILL, whatever their rule files say.
func TestRulesOutliveAllProcesses(t *testing.T) {
	var dirs []string
	limit := 10
	for range 3 {
		dirs = append(dirs, t.TempDir())
	}
	f := startFleet(t, 3, func(i int) []string {
		return []string{"--data-dir", dirs[i], "--rules", fileOf(t, limit), "--drain-timeout", "1s"}
	})
	f.enforces(10, 0)
	for n, by := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		f.put(n, "fixed_window", 70+n)
		f.enforces(70+n, uint64(n+1))
		var all sync.WaitGroup
		for i := range f.size {
			all.Go(func() { f.end(i, by) })
		}
		all.Wait()
		limit = 20 + n // of the files
		f.startAll(3)
		f.enforces(70+n, uint64(n+1))
	}
}
