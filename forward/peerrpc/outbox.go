package peerrpc

import (
	"sync"
	"sync/atomic"

	"github.com/ringlimit/ringlimit/owner"
	"github.com/ringlimit/ringlimit/owner/transfer"
)

// Bounds on the mail that waits for one stream. What finds no room is lost: the
// core says it again when it is still true.
const (
	maxMail      = 1024     // messages
	maxMailBytes = 64 << 20 // of counters, about, as they lie in memory
	fewMail      = 64       // messages, while there is no stream yet
)

// outbox is the mail that waits for one stream.
type outbox struct {
	queue chan mail
	bytes atomic.Int64 // of the counters in queue

	mu   sync.Mutex // to put something in
	link link
}

type mail struct {
	message transfer.Message
	bytes   int64
}

func newOutbox() *outbox { return &outbox{queue: make(chan mail, maxMail)} }

// post never blocks.
func (o *outbox) post(m transfer.Message) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.link == down || o.link == connecting && len(o.queue) >= fewMail {
		return
	}
	bytes := countersOf(m)
	if waiting := o.bytes.Load(); waiting > 0 && waiting+bytes > maxMailBytes {
		return
	}
	select {
	case o.queue <- mail{m, bytes}:
		o.bytes.Add(bytes)
	default:
	}
}

// taken is to be called with what was received from the queue.
func (o *outbox) taken(m mail) transfer.Message {
	o.bytes.Add(-m.bytes)
	return m.message
}

// set says what becomes of mail from now on. What is in the queue stays there.
func (o *outbox) set(l link) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.link = l
}

// drop empties the queue.
func (o *outbox) drop() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for {
		select {
		case m := <-o.queue:
			o.taken(m)
		default:
			return
		}
	}
}

// countersOf is how many bytes of counters the message keeps in memory.
func countersOf(m transfer.Message) (bytes int64) {
	switch m := m.(type) {
	case *transfer.Answers:
		for i := range m.Parts {
			bytes += entriesBytes(m.Parts[i].Chunk.Entries)
		}
	case *transfer.Replicate:
		for i := range m.Copies {
			bytes += entriesBytes(m.Copies[i].Chunk.Entries)
		}
	}
	return bytes
}

func entriesBytes(entries []owner.Entry) (bytes int64) {
	for i := range entries {
		bytes += 96 + int64(len(entries[i].Name)+16*len(entries[i].State.Log))
	}
	return bytes
}
