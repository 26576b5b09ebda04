package owner

import (
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// ids that crowd: few homes, equal Lo, the very first and the very last.
func crowdedID(t *rapid.T) ID {
	base := rapid.SampledFrom([]uint64{0, 1 << 40, math.MaxUint64 - 30, math.MaxUint64 / 3}).Draw(t, "base")
	return ID{Hi: rapid.Uint64Range(0, 2).Draw(t, "hi"), Lo: base + rapid.Uint64Range(0, 30).Draw(t, "lo")}
}

// segmentLaw is a segment, or several that it was split into, beside a map.
type segmentLaw struct {
	parts []*segment
	want  map[ID]string
}

func (l *segmentLaw) part(lo uint64) int {
	i := len(l.parts) - 1
	for l.parts[i].low > lo {
		i--
	}
	return i
}

// rebuild replaces a part, or two of them, by another one.
func (l *segmentLaw) rebuild(t *rapid.T, i, parts, more, names int, depth uint8) {
	var from []source
	for _, s := range l.parts[i : i+parts] {
		from = append(from, s.source())
	}
	d := planned(l.parts[i].low, depth, more, names, from...)
	s := d.build()
	if s.bytes() != d.bytes() {
		t.Fatalf("a segment was to have %d bytes and has %d", d.bytes(), s.bytes())
	}
	l.parts = slices.Replace(l.parts, i, i+parts, s)
}

func (l *segmentLaw) insert(t *rapid.T) {
	for range rapid.IntRange(1, 20).Draw(t, "n") {
		id := crowdedID(t)
		if _, ok := l.want[id]; ok {
			continue
		}
		name := strings.Repeat("x", rapid.SampledFrom([]int{0, 1, 126, 127, 128, 129, 16383, 16384}).Draw(t, "size"))
		i := l.part(id.Lo)
		if !l.parts[i].fits(nameSize([]byte(name))) {
			l.rebuild(t, i, 1, 1, nameSize([]byte(name)), l.parts[i].slots.depth)
		}
		s := l.parts[i]
		if !s.fits(nameSize([]byte(name))) {
			t.Fatal("there is no room after room was made")
		}
		before := len(s.names.text)
		s.slots.insert(slot{id: id, rule: 1, name: s.names.add([]byte(name))})
		if got := len(s.names.text) - before; got != nameSize([]byte(name)) {
			t.Fatalf("a name of %d bytes took %d; nameSize says %d", len(name), got, nameSize([]byte(name)))
		}
		l.want[id] = name
	}
}

func (l *segmentLaw) remove(t *rapid.T) {
	for range rapid.IntRange(1, 20).Draw(t, "n") {
		id := crowdedID(t)
		s := l.parts[l.part(id.Lo)]
		i, found := s.slots.find(id)
		if _, ok := l.want[id]; ok != found {
			t.Fatalf("find says %v for %v; want %v", found, id, ok)
		}
		if found {
			s.names.drop(s.slots.at[i].name)
			s.slots.remove(i)
			delete(l.want, id)
		}
	}
}

func (l *segmentLaw) split(t *rapid.T) {
	i := rapid.IntRange(0, len(l.parts)-1).Draw(t, "part")
	s := l.parts[i]
	if s.slots.depth == 45 { // nothing that crowdedID draws differs behind
		t.Skip("deep enough")
	}
	low, high := s.halves()
	l.parts = slices.Replace(l.parts, i, i+1, low.build(), high.build())
}

func (l *segmentLaw) merge(t *rapid.T) {
	i := rapid.IntRange(0, len(l.parts)-1).Draw(t, "part")
	s := l.parts[i]
	if s.slots.depth == 0 || i+1 == len(l.parts) || l.parts[i+1].low != s.low^1<<(64-s.slots.depth) || l.parts[i+1].slots.depth != s.slots.depth {
		t.Skip("no buddy behind it")
	}
	l.rebuild(t, i, 2, 0, 0, s.slots.depth-1)
}

func (l *segmentLaw) check(t *rapid.T) {
	used := 0
	for _, s := range l.parts {
		checkSlots(t, &s.slots)
		used += s.slots.used
		live := 0
		for i := range s.slots.at {
			if c := &s.slots.at[i]; c.rule != 0 {
				live += nameSize(s.names.at(c.name))
			}
		}
		if got := s.names.live(); got != live {
			t.Fatalf("%d bytes of names count as live; want %d", got, live)
		}
	}
	if used != len(l.want) {
		t.Fatalf("%d counters, want %d", used, len(l.want))
	}
	for id, name := range l.want {
		s := l.parts[l.part(id.Lo)]
		if i, found := s.slots.find(id); !found || string(s.names.at(s.slots.at[i].name)) != name {
			t.Fatalf("%v is lost", id)
		}
	}
}

// Law: segments are a map from ID, in order, whatever is inserted, removed,
// split and merged, and even where nearly all counters want the same home.
func TestSegmentsEqualMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := segmentLaw{[]*segment{new(segment)}, map[ID]string{}}
		t.Repeat(map[string]func(*rapid.T){
			"insert": l.insert,
			"remove": l.remove,
			"rebuild": func(t *rapid.T) {
				i := rapid.IntRange(0, len(l.parts)-1).Draw(t, "part")
				l.rebuild(t, i, 1, rapid.IntRange(0, 99).Draw(t, "more"), rapid.IntRange(0, 99).Draw(t, "names"), l.parts[i].slots.depth)
			},
			"split": l.split,
			"merge": l.merge,
			"":      l.check,
		})
	})
}

// Counters that all want the last home must not make a segment grow for ever.
func TestSlotsAllAtTheLastHome(t *testing.T) {
	s := new(segment)
	for i := range uint64(1000) {
		if !s.fits(1) {
			d := planned(0, 0, 1, 1, s.source())
			s = d.build()
		}
		s.slots.insert(slot{id: ID{Lo: math.MaxUint64 - i}, rule: 1, name: s.names.add(nil)})
	}
	checkSlots(t, &s.slots)
	if len(s.slots.at) > 3*s.slots.used {
		t.Fatalf("%d places for %d counters", len(s.slots.at), s.slots.used)
	}
}

// The garbage collector must not have to look at slots: ten million of them
// would cost it seconds.
func TestSlotHasNoPointers(t *testing.T) {
	if slotSize != 48 {
		t.Errorf("a slot has %d bytes; want 48", slotSize)
	}
	var walk func(reflect.Type)
	walk = func(typ reflect.Type) {
		switch typ.Kind() {
		case reflect.Struct:
			for f := range typ.NumField() {
				walk(typ.Field(f).Type)
			}
		case reflect.Array:
			walk(typ.Elem())
		case reflect.Int64, reflect.Uint64, reflect.Uint32:
		default:
			t.Errorf("a slot contains a %v", typ)
		}
	}
	walk(reflect.TypeFor[slot]())
}
