package membership

// Mailbox hands views to one reader; the latest wins. Put never blocks, so that
// a slow reader cannot hold up the gossip that feeds it.
type Mailbox struct {
	ch chan View
}

// NewMailbox makes an empty one.
func NewMailbox() *Mailbox { return &Mailbox{ch: make(chan View, 1)} }

// Put replaces an unread view. Only one goroutine may call it.
func (m *Mailbox) Put(v View) {
	select {
	case <-m.ch:
	default:
	}
	m.ch <- v
}

// Views is where the reader waits.
func (m *Mailbox) Views() <-chan View { return m.ch }
