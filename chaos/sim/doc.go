// Package sim runs a cluster in one goroutine and in virtual time: the real core
// of package transfer, the real algorithms and the real ring, over a network and
// a gossip that a seed makes as bad as it likes. One seed is one run, to the
// last event. What is simulated besides the core is small: how long messages
// take, when deaths are noticed, and how callers look for an owner.
//
//	world    virtual time and the events in it
//	network  messages, and what becomes of them
//	node     one process: a core, its counters, its clock
//	gossip   who hears of whom, and when a death is noticed
//	caller   checks, and how they find an owner
//	fault    what is done to the cluster
//	oracle   what must be true of the verdicts and of the holders
package sim
