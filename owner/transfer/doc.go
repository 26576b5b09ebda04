// Package transfer decides which node holds a partition, and moves its counters.
//
// A [Core] is a state machine without goroutines, clock, network or chance: a
// shell feeds it events (records of members, messages, ticks, refused
// connections) and carries out what it puts into its outbox. A run can
// therefore be replayed step by step; package chaos/sim does. One method alone,
// [Core.Charge], is for many goroutines: it touches nothing but one partition's
// account, which has a lock.
//
//	record     who is a member, and which of two records is the newer
//	view       the members as this node sees them, and the ring of them
//	members    what it learns of them, and says of itself
//	forget     when the dead are forgotten
//	core       events in, actions out
//	acquire    a new owner asks everybody and collects what they have
//	release    the holder gives its counters away, once
//	nudge      a holder that is not owner asks to be asked
//	credit     what of a partition's charges has no copy, and which replies wait
//	account    a credit with its lock: whoever decides enters charges
//	replicate  the holder's copies: batches, seeds, silence
//	seed       all counters for a new standby, a few partitions at a time
//	standby    the copies that this node keeps for others
//	fence      a node that stood still or lost the others stops deciding
//	status     how partitions stand, for people and metrics
//	message    what nodes say to each other
package transfer
