package owner

import "unsafe"

// segment is the counters of a range of IDs: a table of its own, so small that to
// build it anew holds up nobody. It is never resized. One that is full or littered
// is replaced by a new one, or by two of half the range.
//
// at, homes and depth of its slots do not change, so that Table.touch may read
// them without the partition's lock. All else is guarded by that.
type segment struct {
	low   uint64 // the least Lo of the range
	slots slots
	names names

	next     uint64 // where reclaim goes on
	expected int32  // counters that Expect has announced
	text     int32  // and bytes of their names
}

const (
	segmentSize = int64(unsafe.Sizeof(segment{}))

	// A segment that needs more room is split when it has so many counters
	// (Table.large), or so many bytes of names. To build one of that size takes
	// 0.1 ms.
	segmentCounters = 1 << 11
	segmentText     = 1 << 17
)

// fits says that another counter with so many bytes of name has room.
func (s *segment) fits(name int) bool {
	return len(s.slots.at) > 0 && !s.slots.full() && len(s.names.text)+name <= cap(s.names.text)
}

// wasteful says that the segment, built anew, would need an n-th part less of room.
func (s *segment) wasteful(part int) bool {
	return s.slots.sparse(part) || s.names.littered(part) || s.names.sparse()
}

// end is the least Lo behind the range; false when there is none.
func (s *segment) end() (lo uint64, more bool) {
	lo = s.low + 1<<(64-s.slots.depth)
	return lo, lo > s.low
}

func (s *segment) bytes() int64 { return segmentSize + s.slots.bytes() + s.names.bytes() }

func (s *segment) source() source { return source{s.slots.at, &s.names} }

// source is counters, in order and with gaps, and where their names lie.
type source struct {
	counters []slot
	names    *names
}

// draft is a segment to be. What it will take is known before it is made.
type draft struct {
	low    uint64
	slots  slots
	places int // in the array of slots
	text   int // bytes for names: enough if those to come are as long as these
	from   [2]source
}

// planned is a segment of that range for the counters of one or two sources, the
// lower first, and for more of them, with names of so many bytes in all.
func planned(low uint64, depth uint8, more, names int, from ...source) draft {
	d := draft{low: low, slots: slots{depth: depth}}
	copy(d.from[:], from)
	for _, f := range from {
		for i := range f.counters {
			if c := &f.counters[i]; c.rule != 0 {
				d.slots.used++
				names += nameSize(f.names.at(c.name))
			}
		}
	}
	if d.slots.used+more > 0 {
		d.slots.homes = roomy(d.slots.used + more)
		d.places = max(d.slots.homes, d.lay(nil)) + tail
		d.text = inPages(names * max(d.slots.homes*17/20, d.slots.used+more) / (d.slots.used + more))
	}
	return d
}

// halves are the segments of the lower and the upper half of the range.
func (s *segment) halves() (low, high draft) {
	depth := s.slots.depth + 1
	middle := s.low + 1<<(64-depth)
	i := s.slots.from(middle)
	low = planned(s.low, depth, 0, 0, source{s.slots.at[:i], &s.names})
	high = planned(middle, depth, 0, 0, source{s.slots.at[i:], &s.names})
	return low, high
}

func (d *draft) bytes() int64 { return segmentSize + int64(d.places)*slotSize + int64(d.text) }

// build makes the segment. Its names lie in the order of its counters.
func (d *draft) build() *segment {
	s := &segment{low: d.low, slots: d.slots}
	if d.places > 0 {
		s.slots.at = make([]slot, d.places)
		s.names.text = make([]byte, 0, d.text)
		d.lay(s)
	}
	return s
}

// lay copies the counters to their places in s and returns the first place
// behind the last; without s it only measures.
func (d *draft) lay(s *segment) (end int) {
	for _, f := range d.from {
		for k := range f.counters {
			c := &f.counters[k]
			if c.rule == 0 {
				continue
			}
			i := max(end, d.slots.home(c.id.Lo))
			if s != nil {
				s.slots.at[i] = *c
				s.slots.at[i].name = s.names.add(f.names.at(c.name))
			}
			end = i + 1
		}
	}
	return end
}
