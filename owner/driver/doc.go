// Package driver runs a transfer.Core in a node: it is the lock around it, its
// timer, and the checks that wait for it.
//
// Events come in from whoever has them (gossip, the peer port, a timer), one at
// a time. What the core wants done is done under the same lock, so that it
// happens in order; nothing of it blocks.
//
//	driver   events in, actions out
//	run      the timer
//	decide   checks: decided, or parked until their partition is held
//	promise  admissions: their reply goes when the charge has a copy
//	members  gossip's views as the core's records
//	enter    when a node may serve, and when it may go
//	rings    rings that were made
//	store    the table, and what is measured about it
package driver
