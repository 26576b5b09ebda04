package parcel

import "fmt"

// column takes a value of each item. It is nil when all are zero.
func column[T any, V comparable](items []T, value func(*T) V) []V {
	var zero V
	for i := range items {
		if value(&items[i]) != zero {
			return keyColumn(items, value)
		}
	}
	return nil
}

// keyColumn is a column that is never left out: it says how many items there
// are. Its values take eight bytes each, so that many items make a long letter.
func keyColumn[T, V any](items []T, value func(*T) V) []V {
	values := make([]V, len(items))
	for i := range items {
		values[i] = value(&items[i])
	}
	return values
}

// at is a column's value for an item.
func at[V any](column []V, i int) (v V) {
	if i < len(column) {
		return column[i]
	}
	return v
}

// fit checks that a list is not too long and that each of its other columns has
// a value for every item, or none.
func fit(list string, items, most int, columns ...int) error {
	if items > most {
		return fmt.Errorf("parcel: %s: has %d items; at most %d are allowed", list, items, most)
	}
	for _, n := range columns {
		if n != items && n != 0 {
			return fmt.Errorf("parcel: %s: has a column of %d values for %d items", list, n, items)
		}
	}
	return nil
}

// orNil makes all empty lists equal.
func orNil[T any](items []T) []T {
	if len(items) == 0 {
		return nil
	}
	return items
}

func packPartitions(partitions []int) []uint32 {
	return keyColumn(partitions, func(p *int) uint32 { return uint32(*p) })
}
