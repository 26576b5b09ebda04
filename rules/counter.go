package rules

import (
	"encoding/binary"
	"errors"
	"net/netip"

	"github.com/ringlimit/ringlimit/limit"
)

// A counter's name is a row of parts, each behind its length as a uvarint:
//
//	tier, rule, algorithm, label of each dimension, "", value of each dimension
//
// No part is empty before the values but the one that ends the labels, so a
// name can be read back, and two names are equal only if all their parts are.
// With a separator instead, (a, b_c) and (a_b, c) would share a counter.
//
// Limit, window and burst are not in the name: a changed limit keeps its counter.

// counterPrefix is the part of the name that all counters of a rule share.
func counterPrefix(tier, rule string, algorithm limit.Algorithm, by []dimension) []byte {
	name := appendPart(nil, tier)
	name = appendPart(name, rule)
	name = appendPart(name, algorithm.String())
	for _, d := range by {
		name = appendPart(name, d.label)
	}
	return appendPart(name, "")
}

func appendPart[T string | []byte](dst []byte, part T) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(part))), part...)
}

// appendValue appends the request's value of one of the rule's dimensions. It reports false
// when the request has none: then there is no counter, for a shared one would
// let strangers use up each other's budget. A value that is there but empty is
// a value.
func (q *search) appendValue(dst []byte, r *rule, d *dimension) ([]byte, bool) {
	switch d.kind {
	case byClient:
		return appendPart(dst, q.req.Key), q.req.Key != ""
	case byIP:
		return appendAddr(dst, q.req.IP), q.req.IP.IsValid()
	case byRoute:
		if r.pattern != "" {
			return appendPart(dst, r.pattern), true
		}
		return q.parsedRoute().appendPart(dst), q.req.Route != ""
	default:
		value, ok := q.req.Attributes[d.attribute]
		return appendPart(dst, value), ok
	}
}

// appendAddr appends 4 or 16 bytes. An IPv4 address has one spelling, however
// it came, and a zone names an interface of ours, not the caller.
func appendAddr(dst []byte, addr netip.Addr) []byte {
	addr = addr.Unmap()
	if addr.Is4() {
		b := addr.As4()
		return appendPart(dst, b[:])
	}
	b := addr.As16()
	return appendPart(dst, b[:])
}

var errCounterName = errors.New("rules: not the name of a counter")

// DescribeCounter reads a counter's name back: the rule and the values of its
// dimensions, in the order of `by`, addresses in their usual spelling.
func DescribeCounter(name []byte) (tier, rule string, values []string, err error) {
	tier, name, ok1 := cutPart(name)
	rule, name, ok2 := cutPart(name)
	algorithm, name, ok3 := cutPart(name)
	if _, unknown := limit.ParseAlgorithm(algorithm); !ok1 || !ok2 || !ok3 || unknown != nil {
		return "", "", nil, errCounterName
	}
	by, name, ok := cutLabels(name)
	if !ok {
		return "", "", nil, errCounterName
	}
	for _, d := range by {
		value, rest, ok := cutPart(name)
		if ok && d.kind == byIP {
			value, ok = addrText(value)
		}
		if !ok {
			return "", "", nil, errCounterName
		}
		values, name = append(values, value), rest
	}
	if len(name) != 0 {
		return "", "", nil, errCounterName
	}
	return tier, rule, values, nil
}

// cutLabels reads the labels up to the empty part that ends them.
func cutLabels(name []byte) (by []dimension, rest []byte, ok bool) {
	for len(by) <= MaxDimensions {
		label, rest, ok := cutPart(name)
		if !ok || label == "" {
			return by, rest, ok && len(by) > 0
		}
		d, problem := parseDimension(label)
		if problem != "" {
			return nil, nil, false
		}
		by, name = append(by, d), rest
	}
	return nil, nil, false
}

// cutPart reads one part. A length in more bytes than it needs is refused: each
// counter has one name.
func cutPart(name []byte) (part string, rest []byte, ok bool) {
	n, size := binary.Uvarint(name)
	if size <= 0 || n > uint64(len(name)-size) || size > 1 && name[size-1] == 0 {
		return "", nil, false
	}
	name = name[size:]
	return string(name[:n]), name[n:], true
}

func addrText(value string) (string, bool) {
	addr, ok := netip.AddrFromSlice([]byte(value))
	return addr.String(), ok && !addr.Is4In6()
}

// appendPart appends the route as one part, in its canonical spelling: by raw
// spelling, a client would have a fresh counter for every way to write one path.
func (rt *route) appendPart(dst []byte) []byte {
	if rt.method == "" {
		return appendPart(dst, rt.path)
	}
	dst = binary.AppendUvarint(dst, uint64(len(rt.method)+1+len(rt.path)))
	dst = append(dst, rt.method...)
	dst = append(dst, ' ')
	return append(dst, rt.path...)
}
