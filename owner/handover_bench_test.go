package owner

import "testing"

// BenchmarkExportMillion compares a counter's way out of the table with a plain
// copy of its slot and its name.
func BenchmarkExportMillion(b *testing.B) {
	const n = 1_000_000
	tab, _ := fill(b, n)
	export := func(i int) {
		for from, done := Cursor(0), false; !done; {
			_, from, done = tab.Export(i%benchPartitions, start, from, 512)
		}
	}
	var copied []slot
	var text []byte
	plain := func(i int) {
		p := &tab.partitions[i%benchPartitions]
		copied, text = make([]slot, 0, p.slots.used), make([]byte, 0, len(p.names.text))
		for k := range p.slots.at {
			if s := &p.slots.at[k]; s.rule != 0 {
				copied, text = append(copied, *s), append(text, p.names.at(s.name)...)
			}
		}
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
	tab, _ := fill(b, n)
	rule := benchRule(b)
	entries := make([][]Entry, benchPartitions)
	names := 0
	for p := range entries {
		entries[p] = exported(b, tab, p, start, 512)
		_, names = tab.Size(p)
	}
	var there *Table
	again := func(i int) {
		if i%benchPartitions == 0 {
			there = NewTable(Config{Partitions: benchPartitions, Memory: 4 << 30})
			for p := range benchPartitions {
				there.SetPhase(p, Holding)
			}
		}
	}
	take := func(i int) {
		again(i)
		p := i % benchPartitions
		for k := range entries[p] {
			e := &entries[p][k]
			c := Call{ID: e.ID, Partition: p}
			c.Counter, c.Rule, c.Cost = e.Name, rule, 1
			if _, err := answer(there, start, &c); err != nil {
				b.Fatal(err)
			}
		}
	}
	bring := func(i int) {
		again(i)
		there.Expect(i%benchPartitions, len(entries[i%benchPartitions]), names)
		if err := there.Import(i%benchPartitions, start, entries[i%benchPartitions]); err != nil {
			b.Fatal(err)
		}
	}
	takes := perOp(0, benchPartitions, take)
	ours := perOp(0, benchPartitions, bring)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		bring(i)
	}
	b.ReportMetric(ours*benchPartitions/n, "ns/counter")
	b.ReportMetric(ours/takes, "first-Take/ratio")
}
