// Package examples holds the files that the documentation speaks of, so that
// the command can run with them where they are not on disk.
package examples

import _ "embed"

// Rules is rules.yaml: an example of a rule file, with each of the algorithms.
//
//go:embed rules.yaml
var Rules string
