package layers

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
)

// covers says whether a folder is one of the patterns, or lies below one that
// ends in /...
func covers(patterns []string, folder string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		below, all := strings.CutSuffix(p, "/...")
		return folder == below || all && strings.HasPrefix(folder, below+"/")
	})
}

// badImports says which imports of s the table bans, and why.
func badImports(s source) []string {
	if _, known := layers[s.folder]; !known {
		return []string{fmt.Sprintf("%s: folder %s is not in the table of layers; add it with its reason", s.name, s.folder)}
	}
	var bad []string
	for _, imported := range s.imports {
		if problem := judge(s, imported); problem != "" {
			bad = append(bad, fmt.Sprintf("%s imports %s: %s", s.name, imported, problem))
		}
	}
	return bad
}

func judge(s source, imported string) string {
	switch {
	case imported == module || strings.HasPrefix(imported, module+"/"):
		return judgeOurs(s, folderOf(imported))
	case !strings.Contains(strings.Split(imported, "/")[0], "."):
		return "" // the standard library
	}
	if why, only := standardOnly[s.folder]; only && !s.test {
		return "only the standard library is allowed here: " + why
	}
	return judgeTheirs(s, imported)
}

func folderOf(imported string) string {
	return path.Join(root, strings.TrimPrefix(strings.TrimPrefix(imported, module), "/"))
}

// judgeOurs holds tests to the order too: a test that needs a higher layer is a
// test of that layer. Exceptions are in the table. An external test may import
// the package it tests.
func judgeOurs(s source, imported string) string {
	l := layers[s.folder]
	switch {
	case s.folder == imported, s.test && covers(testImports[s.folder].imports, imported):
		return ""
	case !covers(l.imports, imported):
		return fmt.Sprintf("%s is no layer below %s: %s", imported, s.folder, l.why)
	case !s.test && covers(testOnly, imported):
		return "it is for tests"
	}
	return ""
}

// judgeTheirs lets a test import whatever is in the table: what it compares
// with or mimics goes into no binary.
func judgeTheirs(s source, imported string) string {
	dependency := owned(slices.Collect(maps.Keys(dependencies)), imported)
	d := dependencies[dependency]
	switch {
	case s.test && (dependency != "" || owned(testDependencies, imported) != ""):
		return ""
	case dependency == "":
		return "the dependency is not in the table; add it with its reason"
	case !covers(d.imports, s.folder):
		return fmt.Sprintf("only %s may: %s", strings.Join(d.imports, ", "), d.why)
	}
	return ""
}

// owned finds the module among modules that an imported package belongs to.
func owned(modules []string, imported string) string {
	for _, m := range modules {
		if imported == m || strings.HasPrefix(imported, m+"/") {
			return m
		}
	}
	return ""
}
