// Package owner keeps the counters that this node decides for.
//
// A [Table] is cut into partitions. Each has a lock, a phase and its counters,
// and knows nothing of the others, so that two checks meet only when their
// counters share a partition. To this package a partition is a number; which
// node should hold it is the ring's affair.
//
//	directory which segment a counter belongs to
//	segment   up to about 2,000 counters and their names, built anew as a whole
//	slots     where a counter's state lies: a sorted array with gaps, no pointers
//	names     what the counters are called: bytes in a row, off the hot path
//	logs      the stamps of sliding_window_log, in blocks
//	registry  the rules that counters are counted under, each by a small number
//	memory    the bound on all of that but the rules
//
// Nothing in these holds a pointer for each counter, so ten million counters
// give the garbage collector nothing to do. And nothing is done to more than a
// segment under one hold of a lock, so that neither growth nor expiry is felt,
// however large a partition is. A counter that equals a fresh one is dropped by
// the sweep; no other counter ever is.
//
// A partition changes hands by plain steps, each under its lock: Freeze and
// Export on one node, Import on the other. Who is to take them, and when, is not
// decided here.
package owner
