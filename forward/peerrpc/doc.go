// Package peerrpc carries checks between nodes: one connection and one
// long-lived gRPC stream from each node to each other node.
//
// The life of one check:
//
//	1  conn.Check       packs it into the open frame (record.go, batcher.go)
//	2  batcher.lead     who finds fewer than two frames unanswered sends the frame
//	3  Server.Checks    the owner's goroutine of that stream reads the frame
//	4  judge.frame      decides all of it with one reading of the clock
//	5  batcher.answer   the asker's reader hands the answers to those who wait
//	6  waiters.await    the caller wakes, or has left (waiter.go)
//
// A check is sent once. The exception is an owner that lacks the rule: it says
// so, has not counted, and is sent the check again with the rule's body. It keeps
// the rule with the first counter that it makes under it.
//
// Deadlines cost a check nothing: one goroutine a peer sleeps until the earliest
// of them, and fails what is overdue. What was not sent by then is not sent; an
// answer that comes later is for nobody.
//
// A stream begins with a handshake in its metadata (handshake.go) and ends when
// the owner says farewell and has answered everything, or when the connection
// breaks. What was in flight then fails, for it may have been counted.
package peerrpc
