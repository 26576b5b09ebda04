package wire

import (
	"math"
	"time"
)

// A google.protobuf.Duration and a google.protobuf.Timestamp have the same fields:
// seconds and nanoseconds.

func appendDuration(b []byte, tag uint64, d time.Duration) []byte {
	return appendSeconds(b, tag, int64(d/time.Second), int64(d%time.Second))
}

func appendTime(b []byte, tag uint64, t time.Time) []byte {
	return appendSeconds(b, tag, t.Unix(), int64(t.Nanosecond()))
}

func appendSeconds(b []byte, tag uint64, seconds, nanos int64) []byte {
	b, at := begin(b, tag)
	b = appendNumber(b, one, uint64(seconds))
	b = appendNumber(b, two, uint64(nanos))
	return end(b, at)
}

// readDuration takes what is longer than a time.Duration for the longest.
func readDuration(s string) (time.Duration, error) {
	var seconds, nanos int64
	for len(s) > 0 {
		var f field
		var err error
		if s, err = f.cut(s); err != nil {
			return 0, err
		}
		switch f.tag {
		case one | kindVarint:
			seconds = int64(f.number)
		case two | kindVarint:
			nanos = int64(int32(f.number))
		}
	}
	const most = math.MaxInt64/int64(time.Second) - 3 // of nanos there are up to 2.1 s
	switch {
	case seconds > most:
		return math.MaxInt64, nil
	case seconds < -most:
		return math.MinInt64, nil
	}
	return time.Duration(seconds)*time.Second + time.Duration(nanos), nil
}
