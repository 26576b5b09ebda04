// Package peerrpc carries checks between nodes, and what nodes say to each other
// about counters that change hands: one gRPC connection from each node to each other
// node, with one long-lived stream of checks and two of mail. The frames of the stream
// of checks go on a connection of their own, its lane, to the same port (lane.go,
// lanes.go, conversation.go). gRPC carries them to owners that do not know lanes, and
// where none can be opened.
//
// The life of one check:
//
//	1  conn.Check       packs it into the open frame (record.go, batcher.go)
//	2  batcher.lead     who finds fewer than two frames unanswered sends the frame
//	3  answerer.serve   the owner's goroutine of that stream reads the frame
//	4  judge.frame      has all of it decided with one reading of the clock
//	5  batcher.answer   the asker's reader hands the answers to those who wait
//	6  waiters.Await    the caller wakes, or has left (internal/wait)
//
// Checks that are joined, the limits of one request, travel side by side in one
// frame. The judge has them decided all or none, and answers all of them with an
// error if one is not to be judged (group.go). Owners of version 3 do not know that:
// they are not sent such checks, nor the age of a refund, and whoever asks is told
// to ask for each by itself.
//
// An answer that has to wait, for a counter that is changing hands or for a copy,
// holds up no other. In 4 it becomes "later", with which its frame counts as
// answered; promises.Answer takes the answer itself when it is there, a goroutine
// of the stream sends it with others (answerer.keepPromises), and the asker's
// reader finds who waits for it (batcher.answerLate).
//
// A check is sent once. The exception is an owner that lacks the rule: it says
// so, has not counted, and is sent the check again with the rule's body. It keeps
// the rule with the first counter that it makes under it.
//
// Deadlines cost a check nothing: one goroutine a peer sleeps until the earliest
// of them, and fails what is overdue. What was not sent by then is not sent; an
// answer that comes later is for nobody.
//
// A node that stood still, or lost the others, begins a new era before it decides
// again. What was asked in an earlier one lay in a socket while another node
// decided, and its asker has given up: such a frame is refused. An asker names the
// era that the last answer on the stream had.
//
// Mail is posted and may be lost (outbox.go, carrier.go, receiver.go): the core
// says again what is still true. A hand-over has a stream of its own, so that it
// holds up neither copies, for which replies wait, nor signs of life. What goes
// through a stream of mail is read by package parcel.
//
// Rules that have changed are asked for, by the node that hears of them, on a
// stream that ends with the answer (rules.go).
//
// A stream begins with a handshake in its metadata (handshake.go) and ends when
// the other says farewell and has answered or received everything, or when the
// connection breaks. What was in flight then fails, for it may have been counted;
// what was not sent can be asked of another node. A process that refuses
// connections is gone, and whoever made the pool hears of it at once (dialer.go).
package peerrpc
