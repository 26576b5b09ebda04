// Package driver runs a transfer.Core in a node: it is the lock around it, its
// timer, and what waits for it.
//
// Events come in from whoever has them (the gossip, the peer port, a timer), one
// at a time. What the core wants done is done under the same lock, so that it
// happens in order; nothing of it blocks.
package driver
