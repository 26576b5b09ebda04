package history

import "slices"

// Kind is what was done to the cluster.
type Kind uint8

// The kinds of events. Node is whom it happened to, or NoNode.
const (
	Note      Kind = iota // for the reader only
	Started               // a node was started
	Ready                 // a node answers, and says that it is ready
	Terminate             // SIGTERM
	Killed                // SIGKILL
	Exited                // a process is gone, told to or not
	Paused                // SIGSTOP
	Resumed               // SIGCONT
	Cut                   // the network was harmed
	Healed                // … and mended
)

func (k Kind) String() string {
	return [...]string{"note", "start", "ready", "SIGTERM", "SIGKILL", "exit", "SIGSTOP", "SIGCONT", "cut", "heal"}[k]
}

// NoNode is the node of an event that concerns all.
const NoNode = -1

// Event is something that the harness did or saw.
type Event struct {
	At   int64 // on the history's clock
	Kind Kind
	Node int
	Text string // what a person should read

	// Refused says, of Started, that the process should end by itself.
	Refused bool

	// Keys are those whose owner it happened to, where that was asked for.
	Keys []uint32
	// Code is a process's exit code, of Exited, and Why what else is known of its
	// end.
	Code int
	Why  string
}

// Mark appends an event, with the time as it is now unless e.At is set.
func (h *History) Mark(e Event) {
	if e.At == 0 {
		e.At = h.Now()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.events = append(h.events, e)
}

// Events lists the events so far, by time.
func (h *History) Events() []Event {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := slices.Clone(h.events)
	slices.SortStableFunc(all, func(a, b Event) int { return int(a.At - b.At) })
	return all
}
