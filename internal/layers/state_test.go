package layers

import (
	"errors"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
)

// badState finds what one node in a process could change for another: init
// functions, variables of a package that its code writes to, and variables
// whose type is made to change. sources are the files of one folder.
func badState(set *token.FileSet, sources []source) []string {
	var files []*ast.File
	for _, s := range sources {
		if !s.test && !s.generated {
			files = append(files, s.syntax)
		}
	}
	globals := resolve(set, files)
	var bad []string
	report := func(n ast.Node, format string, args ...any) {
		bad = append(bad, fmt.Sprintf("%s: %s; several nodes share it in one process", set.Position(n.Pos()), fmt.Sprintf(format, args...)))
	}
	for _, f := range files {
		for _, decl := range f.Decls {
			checkDecl(decl, report)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			for _, e := range written(n) {
				if id := base(e); id != nil && globals(id) {
					report(id, "the package's variable %s is written to", id.Name)
				}
			}
			return true
		})
	}
	return bad
}

// resolve returns what tells the package's own variables from locals that
// shadow them. Imports stay unresolved: only names are needed.
func resolve(set *token.FileSet, files []*ast.File) func(*ast.Ident) bool {
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	cfg := types.Config{Importer: noImports{}, Error: func(error) {}}
	pkg, _ := cfg.Check("checked", set, files, info) // errors are those of the missing imports
	return func(id *ast.Ident) bool {
		v, ok := info.Uses[id].(*types.Var)
		return ok && v.Parent() == pkg.Scope()
	}
}

type noImports struct{}

func (noImports) Import(string) (*types.Package, error) { return nil, errors.New("not looked up") }

type reporter func(n ast.Node, format string, args ...any)

func checkDecl(decl ast.Decl, report reporter) {
	switch d := decl.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil && d.Name.Name == "init" {
			report(d, "init changes the package behind its importer's back")
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			if v, ok := spec.(*ast.ValueSpec); ok && d.Tok == token.VAR && mutable(v) {
				report(v, "the package's variable %s is made to change", v.Names[0].Name)
			}
		}
	}
}

// written lists what a statement or an expression writes to, or lets others
// write to by taking its address.
func written(n ast.Node) []ast.Expr {
	switch n := n.(type) {
	case *ast.AssignStmt:
		if n.Tok != token.DEFINE {
			return n.Lhs
		}
	case *ast.IncDecStmt:
		return []ast.Expr{n.X}
	case *ast.UnaryExpr:
		if n.Op == token.AND {
			return []ast.Expr{n.X}
		}
	}
	return nil
}

// base is the variable v of v.f[i], or nil.
func base(e ast.Expr) *ast.Ident {
	for {
		switch x := e.(type) {
		case *ast.Ident:
			return x
		case *ast.SelectorExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.ParenExpr:
			e = x.X
		case *ast.StarExpr:
			e = x.X
		default:
			return nil
		}
	}
}

// mutable looks at how a variable is declared: locks, atomics, channels and
// what make and new return are there to be changed. A sync.Pool is allowed,
// since nobody can tell what it holds.
func mutable(spec *ast.ValueSpec) bool {
	for _, e := range append([]ast.Expr{spec.Type}, spec.Values...) {
		switch e := e.(type) {
		case *ast.ChanType:
			return true
		case *ast.CallExpr:
			if f, ok := e.Fun.(*ast.Ident); ok && (f.Name == "make" || f.Name == "new") {
				return true
			}
		case *ast.CompositeLit:
			if shared(e.Type) {
				return true
			}
		case ast.Expr:
			if shared(e) {
				return true
			}
		}
	}
	return false
}

// shared recognises sync.T, atomic.T and atomic.T[X].
func shared(e ast.Expr) bool {
	if index, ok := e.(*ast.IndexExpr); ok {
		e = index.X
	}
	sel, ok := e.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	pkg, ok := sel.X.(*ast.Ident)
	return ok && (pkg.Name == "atomic" || pkg.Name == "sync" && sel.Sel.Name != "Pool")
}
