package owner

import "testing"

// BenchmarkExportMillion compares a counter's way out of the table with a plain
// copy of its slot and its name.
func BenchmarkExportMillion(b *testing.B) {
	const n = 1_000_000
	tab := fill(b, n)
	export := func(i int) {
		for from, done := Cursor(0), false; !done; {
			_, from, done = tab.Export(i%benchPartitions, start, from, 512)
		}
	}
	var copied []slot
	var text []byte
	plain := func(i int) {
		p := &tab.partitions[i%benchPartitions]
		copied, text = make([]slot, 0, p.used), make([]byte, 0, textOf(tab, i%benchPartitions))
		p.walk(0, func(seg *segment, s *slot) bool {
			copied, text = append(copied, *s), append(text, seg.names.at(s.name)...)
			return true
		})
	}
	ours, plains := race(benchPartitions/32, export, plain)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		export(i)
	}
	if len(copied) == 0 || len(text) == 0 {
		b.Fatal("nothing was copied")
	}
	b.ReportMetric(ours*benchPartitions/n, "best-ns/counter")
	b.ReportMetric(ours/plains, "plain-copy/ratio")
}

// BenchmarkImportMillion compares a counter's way into an empty table with the
// Take that would create it there.
func BenchmarkImportMillion(b *testing.B) {
	const n = 1_000_000
	tab := fill(b, n)
	rule := benchRule(b)
	entries := make([][]Entry, benchPartitions)
	names := 0
	for p := range entries {
		entries[p] = exported(b, tab, p, start, 512)
		_, names = tab.Size(p)
	}
	into := func(fill func(there *Table, p int)) func(int) {
		var there *Table
		return func(i int) {
			if there == nil || i%benchPartitions == 0 {
				there = holding(Config{Partitions: benchPartitions, Memory: 4 << 30})
			}
			fill(there, i%benchPartitions)
		}
	}
	take := into(func(there *Table, p int) {
		for k := range entries[p] {
			e := &entries[p][k]
			c := Call{ID: e.ID, Partition: p}
			c.Counter, c.Rule, c.Cost = e.Name, rule, 1
			if _, err := answer(there, start, &c); err != nil {
				b.Fatal(err)
			}
		}
	})
	bring := into(func(there *Table, p int) {
		there.Expect(p, len(entries[p]), names)
		if err := there.Import(p, start, entries[p]); err != nil {
			b.Fatal(err)
		}
	})
	ours, takes := race(benchPartitions/32, bring, take)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		bring(i)
	}
	b.ReportMetric(ours*benchPartitions/n, "best-ns/counter")
	b.ReportMetric(ours/takes, "first-Take/ratio")
}
