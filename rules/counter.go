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
// For a client's own rule "" and the client's id stand in the tier's place. No
// other part before the values is empty but the one that ends the labels, so a
// name can be read back, and two names are equal only if all their parts are.
// With a separator instead, (a, b_c) and (a_b, c) would share a counter.
//
// Limit, window and burst are not in the name: a changed limit keeps its counter.

// appendPrefix appends the part of the name that all counters of a rule share,
// but for whose it is: entities with equal rules share these.
func appendPrefix(dst []byte, rule string, algorithm limit.Algorithm, by []dimension) []byte {
	dst = appendPart(dst, rule)
	dst = appendPart(dst, algorithm.String())
	for _, d := range by {
		dst = appendPart(dst, d.label)
	}
	return appendPart(dst, "")
}

func appendPart[T string | []byte](dst []byte, part T) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(part))), part...)
}

// win makes a rule of an entity a winner, unless it sets no limit: it names the
// rule's counter, or what the request lacks for it.
func (q *search) win(e *entity, r *rule) {
	if r.unlimited {
		return
	}
	q.m.Winners = append(q.m.Winners, Winner{})
	w := &q.m.Winners[len(q.m.Winners)-1] // written in place: to copy one costs as much as to name it
	w.Rule = &e.limits[r.order]
	if r.deny {
		if w.Missing = q.missing(r); w.Missing != "" {
			return
		}
	}
	start := len(q.m.names)
	name := e.appendHead(q.m.names, r, q.req.Key)
	if r.byClient {
		name = appendPart(name, q.req.Key)
	} else {
		for i := range r.by {
			name = q.appendValue(name, r, &r.by[i])
		}
	}
	q.m.names = name
	w.Counter = name[start:len(name):len(name)]
}

// appendHead appends all of a counter's name but the values: a tier's rule has it
// at hand. Clients share entities: id is that of the request.
func (e *entity) appendHead(dst []byte, r *rule, id string) []byte {
	if !e.client {
		return append(dst, e.heads[r.order]...)
	}
	dst = appendPart(append(dst, 0), id)
	return append(dst, r.prefix...)
}

// headsOf are the heads of a tier's rules; none of a client's.
func headsOf(name EntityName, rules []*rule) []string {
	if name.Kind == ClientEntity {
		return nil
	}
	heads := make([]string, len(rules))
	for i, r := range rules {
		heads[i] = string(append(appendPart(nil, name.Name), r.prefix...))
	}
	return heads
}

// missing is the first dimension that the request lacks.
func (q *search) missing(r *rule) string {
	if r.byClient {
		return "" // Validate has seen that there is a key
	}
	for i := range r.by {
		if d := &r.by[i]; !q.present(r, d) {
			return d.label
		}
	}
	return ""
}

// present reports whether the request has a value of the dimension. Without one
// there is no counter, for a shared one would let strangers use up each other's
// budget. A value that is there but empty is a value.
func (q *search) present(r *rule, d *dimension) bool {
	switch d.kind {
	case byClient:
		return q.req.Key != ""
	case byIP:
		return q.req.IP.IsValid()
	case byRoute:
		return r.pattern != "" || q.req.Route != ""
	}
	_, ok := q.req.Attributes[d.attribute]
	return ok
}

// appendValue appends the request's value of one of the rule's dimensions.
func (q *search) appendValue(dst []byte, r *rule, d *dimension) []byte {
	switch d.kind {
	case byClient:
		return appendPart(dst, q.req.Key)
	case byIP:
		return appendAddr(dst, q.req.IP)
	case byRoute:
		if r.pattern != "" {
			return appendPart(dst, r.pattern)
		}
		return q.parsedRoute().appendPart(dst)
	}
	return appendPart(dst, q.req.Attributes[d.attribute])
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

// CounterName is a counter's name, read back.
type CounterName struct {
	Of     EntityName // whose rule it is
	Rule   string
	Values []string // of its dimensions, in the order of `by`; addresses in their usual spelling
}

// DescribeCounter reads the name of a counter back.
func DescribeCounter(name []byte) (CounterName, error) {
	c, rest, ok1 := cutEntity(name)
	rule, rest, ok2 := cutPart(rest)
	algorithm, rest, ok3 := cutPart(rest)
	if _, unknown := limit.ParseAlgorithm(algorithm); !ok1 || !ok2 || !ok3 || unknown != nil {
		return CounterName{}, errCounterName
	}
	by, rest, ok := cutLabels(rest)
	if !ok {
		return CounterName{}, errCounterName
	}
	described := CounterName{Of: c, Rule: rule}
	for _, d := range by {
		value, behind, ok := cutPart(rest)
		if ok && d.kind == byIP {
			value, ok = addrText(value)
		}
		if !ok {
			return CounterName{}, errCounterName
		}
		described.Values, rest = append(described.Values, value), behind
	}
	if len(rest) != 0 {
		return CounterName{}, errCounterName
	}
	return described, nil
}

// cutEntity reads whose rule it is.
func cutEntity(name []byte) (of EntityName, rest []byte, ok bool) {
	tier, rest, ok := cutPart(name)
	if !ok || tier != "" {
		return EntityName{TierEntity, tier}, rest, ok
	}
	id, rest, ok := cutPart(rest)
	return EntityName{ClientEntity, id}, rest, ok && id != ""
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
