package rules

import (
	"cmp"
	"slices"
	"strings"
)

// node is a place in the tree of a tier's path patterns: a path of segments
// from the root. The patterns that match a request are a chain, each more
// specific than the next, because those that are not are refused as conflicts.
// So to visit literals before wildcards, and longer subtrees before shorter
// ones, is to visit the most specific first.
type node struct {
	ends    []leaf           // patterns that end here
	subtree []leaf           // patterns that match whatever follows here
	wild    *node            // any one segment
	literal map[string]*node // by segment; "/" is the end after a slash
}

// leaf holds the rules of one pattern, in the file's order.
type leaf struct {
	method string // empty: any
	rules  []*rule
}

// insert adds a rule under its pattern.
func (n *node) insert(p pattern, r *rule) {
	for _, s := range p.segments {
		switch s.kind {
		case subtreeSegment: // the last one
			n.subtree = addRule(n.subtree, p.method, r)
			return
		case wildSegment:
			n = n.wildChild()
		default:
			n = n.literalChild(s.literal)
		}
	}
	n.ends = addRule(n.ends, p.method, r)
}

func (n *node) wildChild() *node {
	if n.wild == nil {
		n.wild = &node{}
	}
	return n.wild
}

func (n *node) literalChild(segment string) *node {
	if n.literal == nil {
		n.literal = map[string]*node{}
	}
	c := n.literal[segment]
	if c == nil {
		c = &node{}
		n.literal[segment] = c
	}
	return c
}

// addRule keeps the leaves in the order in which a request tries them: its own
// method, then GET for HEAD, then any.
func addRule(leaves []leaf, method string, r *rule) []leaf {
	for i := range leaves {
		if leaves[i].method == method {
			leaves[i].rules = append(leaves[i].rules, r)
			return leaves
		}
	}
	leaves = append(leaves, leaf{method, []*rule{r}})
	slices.SortFunc(leaves, func(a, b leaf) int {
		return cmp.Or(cmp.Compare(methodRank(a.method), methodRank(b.method)), cmp.Compare(a.method, b.method))
	})
	return leaves
}

func methodRank(method string) int {
	switch method {
	case "":
		return 2
	case "GET":
		return 1
	}
	return 0
}

func (l *leaf) matches(method string) bool {
	return l.method == method || l.method == "" || method == "HEAD" && l.method == "GET"
}

// paths tries the rules whose path pattern matches, the most specific first.
// A request for /tree, where only /tree/ is known, belongs to /tree/: ServeMux
// redirects it there, and other servers answer it alike. A rule that is passed
// over is as if it were not in the file.
func (q *search) paths(root *node) bool {
	path := q.route.path
	return q.exact(root, path) || path[len(path)-1] != '/' && q.slash(root, path) || q.below(root, path)
}

// exact tries the patterns that match the path to its end.
func (q *search) exact(n *node, path string) bool {
	if path == "" {
		return q.leaves(n.ends)
	}
	segment, rest := q.cut(path)
	if c := n.literal[segment]; c != nil && q.exact(c, rest) {
		return true
	}
	return n.wild != nil && segment != pathEnd && q.exact(n.wild, rest)
}

// slash tries the patterns that match the path with a slash appended.
func (q *search) slash(n *node, path string) bool {
	if path == "" {
		if c := n.literal[pathEnd]; c != nil && q.leaves(c.ends) {
			return true
		}
		return q.leaves(n.subtree)
	}
	segment, rest := q.cut(path)
	if c := n.literal[segment]; c != nil && q.slash(c, rest) {
		return true
	}
	return n.wild != nil && segment != pathEnd && q.slash(n.wild, rest)
}

// below tries the patterns of subtrees that the path is in, the deepest first.
func (q *search) below(n *node, path string) bool {
	if path == "" {
		return false
	}
	segment, rest := q.cut(path)
	if c := n.literal[segment]; c != nil && q.below(c, rest) {
		return true
	}
	if n.wild != nil && segment != pathEnd && q.below(n.wild, rest) {
		return true
	}
	return q.leaves(n.subtree)
}

func (q *search) leaves(leaves []leaf) bool {
	for i := range leaves {
		if l := &leaves[i]; l.matches(q.route.method) && q.try(l.rules) {
			return true
		}
	}
	return false
}

// cut splits the first segment off a path, which starts with a slash. A slash
// at the path's end is a segment of its own.
func (q *search) cut(path string) (segment, rest string) {
	if path == "/" {
		return pathEnd, ""
	}
	segment, rest = path[1:], ""
	if i := strings.IndexByte(segment, '/'); i >= 0 {
		segment, rest = segment[:i], segment[i:]
	}
	if q.route.escaped {
		segment = unescape(segment)
	}
	return segment, rest
}
