package rules

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
	"unique"
)

// MaxDimensions bounds the length of `by`, and so of a counter's name.
const MaxDimensions = 8

const maxAttributeBytes = 128

// dimension is one entry of `by`: a value of the request that has a counter of
// its own for each rule.
type dimension struct {
	kind      dimensionKind
	attribute string // name of the attribute
	label     string // as rule files spell it
}

// byClientOnly is the default of `by`. Thousands of rules share it.
var byClientOnly = []dimension{{kind: byClient, label: "client"}}

type dimensionKind uint8

const (
	byClient dimensionKind = iota
	byIP
	byRoute
	byAttribute
)

const attributePrefix = "attribute "

// parseDimension reads one entry of `by`. The problem is empty when the text is
// fine.
func parseDimension(text string) (dim dimension, problem string) {
	switch text {
	case "client":
		return dimension{kind: byClient, label: text}, ""
	case "ip":
		return dimension{kind: byIP, label: text}, ""
	case "route":
		return dimension{kind: byRoute, label: text}, ""
	}
	name, ok := strings.CutPrefix(text, attributePrefix)
	switch {
	case !ok:
		return dim, "is unknown; use client, ip, route or attribute NAME"
	case name == "" || strings.TrimSpace(name) != name:
		return dim, "must be attribute, one space and a name, like attribute region"
	case len(name) > maxAttributeBytes || !utf8.ValidString(name):
		return dim, fmt.Sprintf("must name the attribute in at most %d bytes", maxAttributeBytes)
	}
	return dimension{kind: byAttribute, attribute: name, label: text}, ""
}

// dimensionSet stands for a whole `by`, whatever its order: rules with equal
// ones limit the same thing, and compete. It is compared in one step.
type dimensionSet = unique.Handle[string]

func newDimensionSet(by []dimension) dimensionSet {
	labels := make([]string, 0, len(by))
	for _, d := range by {
		labels = append(labels, d.label)
	}
	slices.Sort(labels)
	var key []byte
	for _, label := range labels {
		key = appendPart(key, label)
	}
	return unique.Make(string(key))
}
