package layers

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"strconv"
	"strings"
)

// source is one Go file.
type source struct {
	name      string // its path from the top of the repository
	folder    string
	test      bool
	generated bool
	imports   []string
	syntax    *ast.File
}

// readSources parses every Go file of the module whose top is fsys, whatever
// its build constraints: a layer holds on every platform.
func readSources(fsys fs.FS, set *token.FileSet) ([]source, error) {
	var all []source
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			return skipFolder(fsys, name)
		case !strings.HasSuffix(name, ".go"):
			return nil
		}
		s, err := readSource(fsys, set, name)
		all = append(all, s)
		return err
	})
	return all, err
}

// skipFolder passes over what the go command passes over too.
func skipFolder(fsys fs.FS, name string) error {
	base := path.Base(name)
	if name == "." {
		return nil
	}
	if _, err := fs.Stat(fsys, path.Join(name, "go.mod")); err == nil {
		return fs.SkipDir
	}
	if base == "testdata" || base == "vendor" || base[0] == '.' || base[0] == '_' {
		return fs.SkipDir
	}
	return nil
}

func readSource(fsys fs.FS, set *token.FileSet, name string) (source, error) {
	text, err := fs.ReadFile(fsys, name)
	if err != nil {
		return source{}, err
	}
	syntax, err := parser.ParseFile(set, name, text, parser.ParseComments)
	if err != nil {
		return source{}, err
	}
	s := source{
		name:      name,
		folder:    path.Dir(name),
		test:      strings.HasSuffix(name, "_test.go"),
		generated: ast.IsGenerated(syntax),
		syntax:    syntax,
	}
	for _, spec := range syntax.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return source{}, err
		}
		s.imports = append(s.imports, imported)
	}
	return s, nil
}
