package gossip

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"
)

func TestBadConfigIsNamed(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Config)
		want   string
	}{
		"short key":            {func(c *Config) { c.Key = []byte("short") }, "key: 5 bytes"},
		"long label":           {func(c *Config) { c.Cluster = strings.Repeat("x", 256) }, "cluster: 256 bytes"},
		"no bind":              {func(c *Config) { c.Bind = "" }, "bind: \"\""},
		"bind without port":    {func(c *Config) { c.Bind = "127.0.0.1" }, "bind: \"127.0.0.1\""},
		"bind port":            {func(c *Config) { c.Bind = "127.0.0.1:70000" }, "port"},
		"bind unknown name":    {func(c *Config) { c.Bind = "nowhere.example:1" }, "bind: lookup nowhere.example"},
		"all without adv":      {func(c *Config) { c.Bind = "0.0.0.0:0" }, "advertise"},
		"all v6 without adv":   {func(c *Config) { c.Bind = "[::]:0" }, "advertise"},
		"any without adv":      {func(c *Config) { c.Bind = ":0" }, "advertise"},
		"adv without port":     {func(c *Config) { c.Advertise = "10.0.0.1" }, "advertise: \"10.0.0.1\""},
		"adv to all":           {func(c *Config) { c.Advertise = "0.0.0.0:1" }, "advertise: 0.0.0.0:1"},
		"not our address":      {func(c *Config) { c.Bind = "192.0.2.1:0" }, "gossip: listen tcp 192.0.2.1:0: bind: "},
		"bad seed":             {func(c *Config) { c.Join = []string{"h:0"} }, "join: \"h:0\""},
		"a name that has none": {func(c *Config) { c.Bind = "empty.example:1" }, "no address"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := Config{Self: member("n1"), Bind: "127.0.0.1:0"}
			lookupOf(map[string][]string{"empty.example": nil})(&cfg)
			c.change(&cfg)
			g, err := Start(cfg)
			if err == nil {
				_ = g.Close()
			}
			if err == nil || !strings.HasPrefix(err.Error(), "gossip: ") || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
		})
	}
}

// memberlist would listen on every interface when given a name.
func TestBindResolvesNames(t *testing.T) {
	cfg := Config{Self: member("n1"), Bind: "here.example:0"}
	lookupOf(map[string][]string{"here.example": {"::1", "127.0.0.1"}})(&cfg)
	if err := cfg.check(); err != nil {
		t.Fatal(err)
	}
	mc, err := cfg.settings()
	if err != nil || mc.BindAddr != "127.0.0.1" {
		t.Errorf("listens on %q, %v", mc.BindAddr, err)
	}
}

func TestLogLevels(t *testing.T) {
	var b bytes.Buffer
	l := newLogger(slog.New(slog.NewTextHandler(&b, &slog.HandlerOptions{Level: slog.LevelDebug})))
	for line, want := range map[string]string{
		"[DEBUG] memberlist: Stream connection": "level=DEBUG msg=\"Stream connection\"",
		"[INFO] memberlist: Suspect n1":         "level=INFO msg=\"Suspect n1\"",
		"[WARN] memberlist: Refuting":           "level=WARN msg=Refuting",
		"[ERR] memberlist: Push/Pull failed":    "level=WARN msg=\"Push/Pull failed\"",
		"[ERROR] memberlist: Failed":            "level=WARN msg=Failed",
		"Err: Could not set the deadline":       "level=WARN msg=\"Err: Could not set the deadline\"",
		"[":                                     "level=WARN msg=[",
	} {
		b.Reset()
		l.Print(line)
		if got := b.String(); !strings.Contains(got, want) || !strings.Contains(got, "from=memberlist") {
			t.Errorf("%q became %q", line, got)
		}
	}
}

func TestLogIsBounded(t *testing.T) {
	w := &lineWriter{}
	now, kept := time.Unix(1000, 0), 0
	for range 500 {
		if _, ok := w.admit(now); ok {
			kept++
		}
	}
	if kept != linesPerSecond {
		t.Errorf("kept %d of 500 lines in one second", kept)
	}
	if dropped, ok := w.admit(now.Add(time.Second)); !ok || dropped != 500-linesPerSecond {
		t.Errorf("the next second: %v, %d dropped", ok, dropped)
	}
	if dropped, _ := w.admit(now.Add(time.Second)); dropped != 0 {
		t.Errorf("told twice")
	}
}

// A name without an address, or one that takes for ever, must not hang Start.
func TestLookupIsBounded(t *testing.T) {
	bubble(t, func(w *world) {
		hang := func(ctx context.Context, _ string) ([]string, error) { <-ctx.Done(); return nil, ctx.Err() }
		start := time.Now()
		if _, err := resolve(context.Background(), hang, "slow.example"); err == nil || time.Since(start) > lookupTimeout {
			t.Errorf("%v after %v", err, time.Since(start))
		}
	})
}
