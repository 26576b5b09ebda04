package peerrpc

import "github.com/ringlimit/ringlimit/owner"

// lateAnswer is one of a frame of late answers:
//
//	uvarint  the id of the frame that asked
//	uvarint  the place of the check in it
//	         the answer; see answer.go
type lateAnswer struct {
	frame  uint64
	index  uint64
	answer answer
	seat   seat // empty: nobody waits for it any more
}

// cutLate reads a frame of them, and appends them to buf.
func cutLate(records []byte, buf []lateAnswer) ([]lateAnswer, error) {
	for len(records) > 0 {
		if len(buf) == maxRecords {
			return buf, errBadFrame
		}
		var l lateAnswer
		var err error
		if l.frame, records, err = cutUvarint(records); err != nil {
			return buf, err
		}
		if l.index, records, err = cutUvarint(records); err != nil {
			return buf, err
		}
		if records, err = cutAnswer(records, &l.answer); err != nil {
			return buf, err
		}
		if l.answer.err == owner.ErrLater {
			return buf, errBadFrame // it was put off already
		}
		buf = append(buf, l)
	}
	return buf, nil
}

// keepLate puts a frame by, until the answers come that its owner has put off.
// b.mu is held.
func (b *batcher) keepLate(f *frame, left int) {
	f.left = left
	b.late[f.id] = f
	b.due(f.earliest)
}

// answerLate hands out late answers. Its error ends the stream.
func (b *batcher) answerLate(records []byte) error {
	heard, err := cutLate(records, b.heard[:0])
	b.heard = heard
	if err != nil {
		return err
	}
	err = b.claimLate(heard)
	var r ringer
	for i := range heard {
		if s := &heard[i].seat; !s.empty() {
			s.answer(&b.waiters, &heard[i].answer)
			r.after(s)
		}
	}
	r.ring()
	clear(heard)
	return err
}

// claimLate finds the seats, which then are the caller's. After an error
// those that were found before have to be answered all the same.
func (b *batcher) claimLate(heard []lateAnswer) (err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range heard {
		if heard[i].seat, err = b.claimOne(heard[i].frame, heard[i].index); err != nil {
			break
		}
	}
	b.endIfDone()
	return err
}

// claimOne is empty when the check is overdue. An answer to a frame that did not
// leave on this stream, or that is not answered yet, is to nothing.
func (b *batcher) claimOne(id, index uint64) (seat, error) {
	f := b.late[id]
	if f == nil {
		if id <= b.oldID || id > b.lastID || b.flies(id) {
			return seat{}, errBadFrame
		}
		return seat{}, nil
	}
	if index >= uint64(len(f.seats)) {
		return seat{}, errBadFrame
	}
	s := f.seats[index]
	if !s.empty() {
		f.seats[index] = seat{}
		b.release(f, 1)
	}
	return s, nil
}

func (b *batcher) flies(id uint64) bool {
	for _, f := range b.flying {
		if f != nil && f.id == id {
			return true
		}
	}
	return false
}

// release counts checks of a late frame that wait no more.
func (b *batcher) release(f *frame, n int) {
	b.pending -= n
	if f.left -= n; f.left == 0 {
		delete(b.late, f.id)
		b.frames.put(f)
	}
}

// scanLate fails the overdue checks of late frames. b.mu is held.
func (b *batcher) scanLate(now int64, overdue *answer) {
	for _, f := range b.late {
		n := f.expire(now, &b.waiters, overdue)
		b.scanAt = min(b.scanAt, f.earliest)
		b.release(f, n)
	}
	b.endIfDone()
}

// failLate gives up all of them. b.mu is held.
func (b *batcher) failLate(a *answer) {
	for id, f := range b.late {
		delete(b.late, id)
		b.drop(f, f.left, a)
	}
}
