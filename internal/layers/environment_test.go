package layers

import (
	"fmt"
	"go/ast"
	"go/token"
)

// badEnvironment finds reads of environment variables outside of cmd.
func badEnvironment(set *token.FileSet, s source) []string {
	if covers(environment, s.folder) || s.test {
		return nil
	}
	var bad []string
	ast.Inspect(s.syntax, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok && readsEnvironment(sel) {
			bad = append(bad, fmt.Sprintf("%s: only cmd reads the environment; take the value as an argument", set.Position(sel.Pos())))
		}
		return true
	})
	return bad
}

func readsEnvironment(sel *ast.SelectorExpr) bool {
	pkg, ok := sel.X.(*ast.Ident)
	if !ok || pkg.Name != "os" && pkg.Name != "syscall" {
		return false
	}
	switch sel.Sel.Name {
	case "Getenv", "LookupEnv", "Environ", "ExpandEnv":
		return true
	}
	return false
}
