package gossip

import (
	"context"
	"log"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// linesPerSecond bounds what memberlist may log. It writes a line for every
// packet it cannot read, and anyone can send those.
const linesPerSecond = 50

// newLogger hands memberlist's lines to slog. They carry their level as text.
func newLogger(to *slog.Logger) *log.Logger {
	return log.New(&lineWriter{to: to}, "", 0)
}

type lineWriter struct {
	to *slog.Logger

	mu      sync.Mutex
	second  time.Time
	lines   int
	dropped int
}

// Write gets one line a call.
func (w *lineWriter) Write(line []byte) (int, error) {
	level, text := parseLine(string(line))
	if !w.to.Enabled(context.Background(), level) {
		return len(line), nil
	}
	dropped, ok := w.admit(time.Now())
	if dropped > 0 {
		w.to.Warn("memberlist logged more than was kept", "dropped", dropped)
	}
	if ok {
		w.to.Log(context.Background(), level, text, "from", "memberlist")
	}
	return len(line), nil
}

// admit counts a line, and tells at the start of a second how many of the last
// were dropped.
func (w *lineWriter) admit(now time.Time) (dropped int, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if now.Sub(w.second) >= time.Second {
		dropped, w.dropped = w.dropped, 0
		w.second, w.lines = now, 0
	}
	w.lines++
	if w.lines > linesPerSecond {
		w.dropped++
		return dropped, false
	}
	return dropped, true
}

// parseLine reads "[LEVEL] memberlist: text". memberlist's errors are warnings
// here: to it each peer that vanishes is one, while for an operator that is the
// cluster at work. A line without a level is unexpected, so it is a warning too.
func parseLine(line string) (slog.Level, string) {
	line = strings.TrimSpace(line)
	level := slog.LevelWarn
	if tag, rest, ok := strings.Cut(line, "] "); ok && strings.HasPrefix(tag, "[") {
		line = rest
		switch tag[1:] {
		case "DEBUG":
			level = slog.LevelDebug
		case "INFO":
			level = slog.LevelInfo
		}
	}
	return level, strings.TrimPrefix(line, "memberlist: ")
}
