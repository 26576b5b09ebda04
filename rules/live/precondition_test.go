package live

import (
	"slices"
	"strings"
	"testing"
)

// What reads as a list of tags reads the same when it is written plainly, and none of
// its tags reaches over its quotes.
func FuzzTags(f *testing.F) {
	for _, seed := range []string{`"a"`, `W/"a", "b,c"`, `,"a",,"b",`, `"a" "b"`, `"a`, `*`, `"a", *`, "\t\"\"", `w/"a"`, `"x,"1-a",y"`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, list string) {
		tags, ok := readTags(list)
		if !ok {
			return
		}
		var plain []string
		for _, tag := range tags {
			if n := len(tag.opaque); n < 2 || tag.opaque[0] != '"' || strings.IndexByte(tag.opaque[1:], '"') != n-2 {
				t.Errorf("%q has the tag %q", list, tag.opaque)
			}
			if tag.weak {
				tag.opaque = "W/" + tag.opaque
			}
			plain = append(plain, tag.opaque)
		}
		again, ok := readTags(strings.Join(plain, ", "))
		if !ok || len(tags) == 0 || !slices.Equal(again, tags) {
			t.Errorf("%q is %v, written plainly %v", list, tags, again)
		}
	})
}
