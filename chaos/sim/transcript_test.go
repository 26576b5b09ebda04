package sim

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ringlimit/ringlimit/limit"
	"github.com/ringlimit/ringlimit/owner"
	"github.com/ringlimit/ringlimit/owner/transfer"
)

// Transcripts are runs of three nodes and one counter, on a network that does
// nothing wrong, to be read. After a change that is meant, write them anew with
// -update and read the difference.
func TestTranscripts(t *testing.T) {
	for name, script := range map[string]func(*transcript){
		"join": func(s *transcript) {
			s.check("n1", 5)
			s.until(2*time.Second, "a fourth node joins", func() { Join(s.w) })
			s.until(4*time.Second, "the counter has moved; the client comes again", nil)
			s.check("n1", 2)
		},
		"leave": func(s *transcript) {
			s.check("n1", 5)
			s.until(2*time.Second, "the owner leaves", func() { s.holder().leave() })
			s.until(3*time.Second, "the client comes again", nil)
			s.check(s.other(), 2)
		},
		"crash": func(s *transcript) {
			s.check("n1", 4)
			s.until(2*time.Second, "the owner crashes, and at once the client comes again", func() { s.holder().stop() })
			s.check(s.other(), 2)
			s.until(6*time.Second, "gossip has noticed as well", nil)
		},
		"partition": func(s *transcript) {
			s.check("n1", 3)
			s.until(2*time.Second, "the owner is cut off from the two others", func() { s.isolate() })
			s.until(6*time.Second, "a client on each side", nil)
			s.check(string(s.lonely.id), 3)
			s.check(s.other(), 3)
			s.until(7*time.Second, "the cut is healed", func() { clear(s.w.cut) })
			s.until(10*time.Second, "the client comes again", nil)
			s.check("n1", 1)
		},
	} {
		t.Run(name, func(t *testing.T) {
			client := "alice"
			if name == "join" {
				client = "grace" // whose counter the fourth node gets
			}
			s := newTranscript(client)
			script(s)
			golden(t, filepath.Join("testdata", name+".txt"), s.out.Bytes())
		})
	}
}

func golden(t *testing.T, file string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs; the run is now\n%s", file, got)
	}
}

// transcript is a run with one counter, and what is written about it.
type transcript struct {
	w      *world
	key    *key
	out    bytes.Buffer
	lonely *node
}

func newTranscript(name string) *transcript {
	w := newWorld(Config{Seed: 1, Nodes: 3, Partitions: 8, Calm: true})
	s := &transcript{w: w, key: &key{name: name}}
	s.key.old = mustRule(limit.Spec{Algorithm: limit.TokenBucket, Limit: 5, Window: time.Hour})
	s.key.charged = newHistory(s.key.old)
	s.key.id = owner.Seed(1).ID([]byte(s.key.name))
	s.key.partition = int(s.key.id.Hi % uint64(w.cfg.Partitions))
	w.keys = append(w.keys, s.key)
	w.found()
	w.startGossip()
	w.runUntil(int64(time.Second))
	fmt.Fprintf(&s.out, "# %s may 5 an hour; the counter is in partition %d, which %s holds\n", name, s.key.partition, s.holder().id)
	w.trace, w.spy = s.noted, s.said
	return s
}

// until lets time pass, and then something happen.
func (s *transcript) until(at time.Duration, what string, do func()) {
	s.w.runUntil(int64(at))
	fmt.Fprintf(&s.out, "\n# %s\n", what)
	if do != nil {
		do()
	}
}

// check lets the client ask a gateway so many times, and says what came of it.
func (s *transcript) check(at string, times int) {
	admitted, refused, unanswered := len(s.key.admitted), s.w.refusals, s.w.unanswered
	for range times {
		for _, n := range s.w.nodes {
			if string(n.id) == at {
				s.w.ask(n, s.key)
			}
		}
	}
	s.w.runUntil(s.w.now + 100*ms)
	fmt.Fprintf(&s.out, "%s %s asks %s %d times: %d admitted, %d refused, %d unanswered\n",
		s.clock(), s.key.name, at, times, len(s.key.admitted)-admitted, s.w.refusals-refused, s.w.unanswered-unanswered)
}

func (s *transcript) clock() string {
	return fmt.Sprintf("%8.4fs", time.Duration(s.w.now).Seconds())
}

func (s *transcript) holder() *node { return s.w.holder(s.key.partition) }

// other is a gateway that runs and is not cut off.
func (s *transcript) other() string {
	for _, n := range s.w.nodes {
		if n.up && n != s.lonely && n.table.Phase(s.key.partition) != owner.Holding {
			return string(n.id)
		}
	}
	return ""
}

func (s *transcript) isolate() {
	s.lonely = s.holder()
	s.w.part(5 * int64(time.Second))
	for _, n := range s.w.nodes {
		if n != s.lonely {
			s.w.cut[link{n, s.lonely}], s.w.cut[link{s.lonely, n}] = true, true
		}
	}
}

// noted writes what the world notes, but for verdicts and other partitions.
func (s *transcript) noted(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	_, text, _ := strings.Cut(line, " ")
	var node string
	var p int
	if n, _ := fmt.Sscanf(text, "%s partition %d:", &node, &p); n == 2 && p != s.key.partition || strings.Contains(text, s.key.name) {
		return
	}
	fmt.Fprintf(&s.out, "%s %s", s.clock(), text)
}

// said writes what one core tells another about the partition.
func (s *transcript) said(from, to *node, m transfer.Message) {
	for _, text := range s.about(m) {
		fmt.Fprintf(&s.out, "%s   %s -> %s: %s\n", s.clock(), from.id, to.id, text)
	}
}

func (s *transcript) about(m transfer.Message) (lines []string) {
	say := func(p int, format string, args ...any) {
		if p == s.key.partition {
			lines = append(lines, fmt.Sprintf(format, args...))
		}
	}
	switch m := m.(type) {
	case *transfer.Acquire:
		for _, a := range m.Asks {
			say(a.Partition, "%s", map[bool]string{false: "do you have it?", true: "give it to me"}[a.Pull])
		}
	case *transfer.Answers:
		for _, a := range m.Parts {
			say(a.Partition, "%v%s", a.Status, counters(a.Chunk))
		}
	case *transfer.Ack:
		releases(m.Releases, say, "I hold it")
	case *transfer.Nack:
		releases(m.Releases, say, "I shall not hold it")
	case *transfer.Nudge:
		releases(m.Releases, say, "it is yours, I have it")
		for _, p := range m.Copies {
			say(p, "I have a copy that should be elsewhere")
		}
	case *transfer.Replicate:
		for _, c := range m.Copies {
			say(c.Partition, "keep a copy%s", counters(c.Chunk))
		}
	case *transfer.Drop:
		for _, p := range m.Partitions {
			say(p, "drop your copy")
		}
	}
	return lines
}

func releases(list []transfer.Release, say func(int, string, ...any), text string) {
	for _, r := range list {
		say(r.Partition, "%s", text)
	}
}

func counters(c transfer.Chunk) string {
	switch n := len(c.Entries); {
	case n == 1:
		return ", 1 counter"
	case n > 1:
		return fmt.Sprintf(", %d counters", n)
	}
	return ""
}
