package transfer

import "github.com/ringlimit/ringlimit/limit"

// Entry is one counter on its way, under the rule it was counted under.
type Entry struct {
	Name  []byte
	Rule  *limit.Rule
	State limit.Shipped
}
