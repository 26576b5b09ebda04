package main

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/ringlimit/ringlimit"
	"github.com/ringlimit/ringlimit/front/adminfront"
	"github.com/ringlimit/ringlimit/rules"
)

// diary keeps the changes that it is told of.
type diary struct {
	slog.Handler
	mu    sync.Mutex
	lines []map[string]string
}

func newDiary() *diary { return &diary{Handler: slog.DiscardHandler} }

func (d *diary) Enabled(context.Context, slog.Level) bool {
	runtime.Gosched() // whoever is to write a line may be overtaken here
	return true
}

func (d *diary) Handle(_ context.Context, r slog.Record) error {
	line := map[string]string{"msg": r.Message}
	r.Attrs(func(a slog.Attr) bool { line[a.Key] = a.Value.String(); return true })
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = append(d.lines, line)
	return nil
}

// Each line goes on from what the one before it led to, though the changes come at
// once and by three ways.
func TestAuditLinesHaveTheOrderOfTheChanges(t *testing.T) {
	d, i := newDiary(), alone()
	i.audit = slog.New(d)
	r := live(t, i)
	door := r.adminHandler()
	ask127(door, "PUT", "/v1/limits/free", []byte(oneLimit(1)))
	var all sync.WaitGroup
	const writers, each = 4, 25
	for w := range writers {
		all.Go(func() {
			for n := range each {
				body := oneLimit(2 + w*each + n)
				if w > 0 {
					ask127(door, "PUT", "/v1/limits/free", []byte(body))
				} else if err := r.editor.apply(parsed(t, `{"tiers":{"free":`+body[len(`{"rules":`):len(body)-1]+`}}`), "SIGHUP"); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	now := "1"
	for _, line := range d.lines[1:] {
		if line["field"] != "limit" || line["from"] != now {
			t.Fatalf("after %s came %v", now, line)
		}
		now = line["to"]
	}
	if body := ask127(door, "GET", "/v1/limits/free", nil).Body.String(); len(d.lines) != 1+writers*each || !strings.Contains(body, `"limit":`+now+`,`) {
		t.Errorf("%d lines, the last led to %s; in force is %s", len(d.lines), now, body)
	}
}

func parsed(t *testing.T, file string) *rules.Set {
	set, err := rules.Parse("rules.yaml", []byte(file))
	if err != nil {
		t.Error(err)
	}
	return set
}

// What this version could not read is told whole, also when it is deleted.
func TestAuditOfWhatCannotBeRead(t *testing.T) {
	const newer = `{"rules":[],"region":"eu"}`
	for _, is := range []string{"", oneLimit(1)} {
		d := newDiary()
		e := &editor{audit: slog.New(d)}
		written := ringlimit.Written{Was: []byte(newer)}
		if is != "" {
			written.Is = []byte(is)
		}
		e.note(adminfront.Write{Entity: adminfront.Entity{Kind: adminfront.Tier, Name: "free"}, Author: adminfront.Author{Address: "x", Token: true}}, written)
		want := map[string]string{"msg": "rules changed", "by": "the token's holder at x", "entity": "tier/free", "rule": "", "field": "", "from": newer, "to": is}
		if len(d.lines) != 1 || fmt.Sprint(d.lines[0]) != fmt.Sprint(want) {
			t.Errorf("%v, want %v", d.lines, want)
		}
	}
}

// A long text is cut in the log.
func TestAuditIsBounded(t *testing.T) {
	d := newDiary()
	e := &editor{audit: slog.New(d)}
	e.noteAll("me", []rules.Change{{To: strings.Repeat("é", maxLogged)}})
	if got := d.lines[0]["to"]; len(got) > maxLogged+40 || !strings.HasSuffix(got, "… ("+strconv.Itoa(2*maxLogged)+" bytes)") {
		t.Errorf("%d bytes", len(got))
	}
}
