// Package rules turns a rule file into a Set: immutable, compiled, and safe for
// concurrent use.
//
// A rule file, once:
//
//	Parse     YAML -> every problem with its line and field, or a Set
//
// A request, each time, without allocation:
//
//	1  route    method and path, cleaned as net/http.ServeMux cleans them
//	2  level    the request's tier, then the tier "default"
//	3  pattern  the rules whose route_pattern matches, the most specific first;
//	            then the rules without one
//	4  counter  the first of these rules that finds all its dimensions in the
//	            request names the counter: rule and dimension values, each with
//	            its length, so that no two share a name
package rules
