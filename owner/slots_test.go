package owner

import (
	"math"
	"reflect"
	"testing"

	"pgregory.net/rapid"
)

// ids that crowd: few homes, equal Lo, the very first and the very last.
func crowdedID(t *rapid.T) ID {
	base := rapid.SampledFrom([]uint64{0, 1 << 40, math.MaxUint64 - 30, math.MaxUint64 / 3}).Draw(t, "base")
	return ID{Hi: rapid.Uint64Range(0, 2).Draw(t, "hi"), Lo: base + rapid.Uint64Range(0, 30).Draw(t, "lo")}
}

// Law: slots are a map from ID, in order, whatever is inserted and removed, and
// even where nearly all counters want the same home.
func TestSlotsEqualMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := slots{}
		m := map[ID]uint32{}
		t.Repeat(map[string]func(*rapid.T){
			"insert": func(t *rapid.T) {
				for range rapid.IntRange(1, 20).Draw(t, "n") {
					id := crowdedID(t)
					if _, ok := m[id]; ok {
						continue
					}
					if len(s.at) == 0 || s.full() {
						s = s.resized(roomy(s.used + 1))
					}
					m[id] = rapid.Uint32().Draw(t, "name")
					s.insert(slot{id: id, rule: 1, name: m[id]})
				}
			},
			"remove": func(t *rapid.T) {
				for range rapid.IntRange(1, 20).Draw(t, "n") {
					id := crowdedID(t)
					i, found := s.find(id)
					if _, ok := m[id]; ok != found {
						t.Fatalf("find says %v for %v; want %v", found, id, ok)
					}
					if found {
						s.remove(i)
						delete(m, id)
					}
				}
			},
			"resize": func(t *rapid.T) { s = s.resized(roomy(s.used) + rapid.IntRange(0, 99).Draw(t, "more")) },
			"": func(t *rapid.T) {
				checkSlots(t, &s)
				if s.used != len(m) {
					t.Fatalf("%d counters, want %d", s.used, len(m))
				}
				for id, name := range m {
					if i, found := s.find(id); !found || s.at[i].name != name {
						t.Fatalf("%v is lost", id)
					}
				}
			},
		})
	})
}

// Counters that all want the last home must not make the table grow for ever.
func TestSlotsAllAtTheLastHome(t *testing.T) {
	s := slots{}
	for i := range uint64(1000) {
		if len(s.at) == 0 || s.full() {
			homes := s.homes
			if s.crowded() {
				homes = roomy(s.used + 1)
			}
			s = s.resized(homes)
		}
		s.insert(slot{id: ID{Lo: math.MaxUint64 - i}, rule: 1})
	}
	checkSlots(t, &s)
	if len(s.at) > 3*s.used {
		t.Fatalf("%d places for %d counters", len(s.at), s.used)
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
