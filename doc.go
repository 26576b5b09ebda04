// Package ringlimit is a rate limiter that needs no shared store. Nodes form a
// cluster by gossip, place every counter on a consistent-hash ring and send
// each check at most one hop, to the node that owns the counter. The owner
// decides exactly, in memory.
//
// The life of one check:
//
//	1  front/…            HTTP, middleware -> limit.Request
//	2  rules.Set.Match    which rule applies -> one limit.Charge {counter, rule, cost}
//	3  ring.Ring          partition of the counter, owner of the partition (one atomic load)
//	4a owner.Table        ours: lock the partition, limit.Rule.Take(state, now, cost)
//	   owner/driver       its charge is copied; the reply may have to wait for that
//	4b forward            not ours: known to be denied until T -> Verdict, no hop
//	4c forward/peerrpc    else: one record in a frame on the owner's stream -> its 4a
//	5  front              Verdict -> headers, 429
//
// A node that receives 4c decides, or answers "not mine" with a hint; it never
// forwards again. Time is read once, by the owner, at 4a.
//
// The life of one membership change:
//
//	1  membership/gossip  the gossip library's callback only signals: it runs under its lock
//	2  membership/gossip  one goroutine settles the burst and builds a View; the latest wins
//	3  owner/driver       the view becomes records, and an event of the core
//	4  owner/transfer     the core makes the ring, and asks everybody for the partitions
//	                      gained; those lost it decides for until their owner takes them
//	5  forward.Router     one atomic store publishes the ring
//
// The life of one change of rules:
//
//	1  Node.PutLimits     rules/live.Store: parsed, compiled, kept in a file, in force here
//	2  membership/gossip  this node's member record has another digest
//	3  puller             who sees that asks for what it lacks (forward/peerrpc), and merges it
//
// The partition's phase in owner.Table is the truth; the ring is advice.
// So views may differ between nodes for a while without a node deciding for a
// counter that it does not hold. owner/DESIGN.md argues it.
//
// Start makes a [Node], which is the same object embedded in a gateway and in
// the ringlimit command. Several nodes fit in one process: there is no
// package-level state.
package ringlimit
