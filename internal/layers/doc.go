// Package layers has no code: its test holds the import table of this
// repository, each line with its reason, and checks every package against it.
package layers
