package wire

import (
	"time"

	"github.com/ringlimit/ringlimit/limit"
)

// Fields of a Verdict.
const (
	vAllowed     = one
	vLimit       = two
	vRemaining   = three
	vRetryAfter  = four
	vResetAt     = five
	vResetAfter  = six
	vRule        = seven
	vSource      = eight
	vReason      = nine
	vDelay       = ten
	vLimits      = n11
	vShadow      = n12
	vExplanation = n13
	vRuleID      = n14
)

// AppendVerdict appends the fields of a Verdict that is told at now. Numbers may be
// nil.
func AppendVerdict(b []byte, v *limit.Verdict, now time.Time, numbers *Numbers) []byte {
	b = appendBool(b, vAllowed, v.Allowed)
	if v.Rule != nil {
		b = appendFigures(b, v, now)
		b = appendString(b, vRule, v.Rule.Name)
		b = appendNumber(b, vSource, sourceNumber(v.Source))
		b = appendNumber(b, vRuleID, numbers.of(v.Rule))
	}
	b = appendNumber(b, vReason, uint64(v.Reason))
	if v.Delay > 0 {
		b = appendDuration(b, vDelay, v.Delay)
	}
	limits := v.Limits()
	for i := range limits {
		var at int
		b, at = begin(b, vLimits)
		b = AppendVerdict(b, &limits[i], now, numbers)
		b = end(appendBool(b, vShadow, limits[i].Rule.Shadow), at)
	}
	return b
}

// appendFigures leaves them out when they are no counter's, and a wait when it
// would not help.
func appendFigures(b []byte, v *limit.Verdict, now time.Time) []byte {
	if v.Reason == limit.MissingDimension {
		return b
	}
	b = appendPresent(b, vLimit, uint64(v.Limit))
	b = appendPresent(b, vRemaining, uint64(v.Remaining))
	if v.Allowed || v.Reason == limit.NoReason {
		b = appendDuration(b, vRetryAfter, v.RetryAfter)
	}
	// The verdict was given a little before now: the nearest millisecond is meant.
	b = appendTime(b, vResetAt, now.Add(v.ResetAfter).Round(time.Millisecond))
	return appendDuration(b, vResetAfter, v.ResetAfter)
}

// AppendExplanation appends the JSON that explains a verdict.
func AppendExplanation(b, json []byte) []byte { return appendString(b, vExplanation, string(json)) }

// The numbers of Source. Whether the owner was a hop away is nobody's concern.
const (
	sourceOwner     = 1
	sourceDenyCache = 2
	sourceFallback  = 3
)

func sourceNumber(s limit.Source) uint64 {
	switch s {
	case limit.SourceOwner, limit.SourceForwarded:
		return sourceOwner
	case limit.SourceDenyCache:
		return sourceDenyCache
	case limit.SourceFallback:
		return sourceFallback
	}
	return 0
}

func sourceOf(n uint64) limit.Source {
	switch n {
	case sourceOwner:
		return limit.SourceForwarded // to a client it always is
	case sourceDenyCache:
		return limit.SourceDenyCache
	case sourceFallback:
		return limit.SourceFallback
	}
	return limit.NoSource
}

// readVerdict reads a Verdict. rules has those that it may name.
func readVerdict(s string, v *limit.Verdict, rules *Rules) error {
	var limits []string
	if err := readOne(s, v, rules, &limits); err != nil || limits == nil {
		return err
	}
	each := make([]limit.Verdict, 0, len(limits))
	for _, s := range limits {
		var one limit.Verdict
		if err := readOne(s, &one, rules, nil); err != nil {
			return err
		}
		if one.Rule != nil {
			each = append(each, one)
		}
	}
	if len(each) > 0 {
		*v = limit.Combine(each)
	}
	return nil
}

// readOne reads one without its limits, which it appends to them. A limit has none:
// its own, with limits nil, are not read.
func readOne(s string, v *limit.Verdict, rules *Rules, limits *[]string) error {
	*v = limit.Verdict{}
	var name string
	var id uint64
	for len(s) > 0 {
		var f field
		var err error
		if s, err = f.cut(s); err != nil {
			return err
		}
		switch f.tag {
		case vLimits | kindBytes:
			if limits != nil {
				*limits = append(*limits, f.bytes)
			}
		case vRule | kindBytes:
			name = f.bytes
		case vRuleID | kindVarint:
			id = f.number
		default:
			err = readFigure(&f, v)
		}
		if err != nil {
			return err
		}
	}
	v.Rule = rules.find(id, name)
	return nil
}

func readFigure(f *field, v *limit.Verdict) (err error) {
	switch f.tag {
	case vAllowed | kindVarint:
		v.Allowed = f.number != 0
	case vLimit | kindVarint:
		v.Limit = int64(f.number)
	case vRemaining | kindVarint:
		v.Remaining = int64(f.number)
	case vRetryAfter | kindBytes:
		v.RetryAfter, err = readDuration(f.bytes)
	case vResetAfter | kindBytes:
		v.ResetAfter, err = readDuration(f.bytes)
	case vDelay | kindBytes:
		v.Delay, err = readDuration(f.bytes)
	case vSource | kindVarint:
		v.Source = sourceOf(f.number)
	case vReason | kindVarint:
		v.Reason = limit.Reason(f.number)
	}
	return err
}
