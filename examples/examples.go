// Package examples holds files that show how ringlimit is set up.
package examples

import _ "embed"

// Rules is rules.yaml: what `ringlimit dev` enforces when it is given no rules.
//
//go:embed rules.yaml
var Rules string
