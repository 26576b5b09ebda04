// Package rules turns a rule file, and what is changed in it later, into a Set:
// immutable, compiled, and safe for concurrent use.
//
// A rule file, once:
//
//	Parse     YAML or JSON -> every problem with its line and field, or a Set
//
// A request, each time, without allocation:
//
//	1  route    method and path, cleaned as net/http.ServeMux cleans them
//	2  level    the client's rules for the route, its others; the tier's rules for
//	            the route, its others; the tier "default"
//	3  choice   in each dimension (`by`) the first level that has a rule for the
//	            request; there the highest priority, there the most specific
//	            pattern; all rules that are equal in that. Rules in shadow are
//	            chosen beside the enforced ones, and never in their place
//	4  counter  each winner names its counter: rule and dimension values, each
//	            with its length, so that no two share a name
//
// A change of rules, without stopping anything:
//
//	With      new bodies of some tiers and clients -> another Set, or all problems
package rules
