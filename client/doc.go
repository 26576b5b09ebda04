// Package client asks a cluster of ringlimit nodes over gRPC. A [Client] is a
// front.Checker, so that the HTTP middleware runs on a remote cluster as it does on
// an embedded node.
//
// It keeps one stream of checks to each of the nodes that it was given. Any of them
// answers for the whole cluster, so calls that are under way together go to the same
// one, and share their messages: up to 256 of them, for 1,024 calls. Then it is
// another node's turn, the one of two random nodes that owes fewer answers.
//
// The life of one call:
//
//	1  Client.call     picks a node (client.go)
//	2  batcher.add     puts the call into the node's open frame (batcher.go)
//	3  batcher.lead    who finds fewer than two messages unread sends the frame
//	4  node.converse   reads the answers, as they come, in any order (node.go)
//	5  waiters.Await   the caller wakes, or has left (internal/wait)
//
// A call is sent once. What was in flight when a stream broke fails with ErrLost, for
// it may have been counted; what was not sent goes to another node. A node that is
// going to stop says farewell first, and answers what it was sent: a rolling restart
// of the cluster fails no call.
//
// A denial is a verdict. [Client.Wait] is for who can wait and ask again, which a budget
// of retries bounds (budget.go).
//
// A broken stream is made anew at once; a node that cannot be reached is tried again
// after a pause, which grows to a second. While no node could be reached yet calls
// wait, within their time, for the first that can be; when all are gone they fail at
// once with ErrUnavailable.
package client
