package edges

import (
	"go/ast"
)

// readsEnvironment finds os.Getenv and its kin: settings come from the configuration, which only cmd reads.
func readsEnvironment(f *ast.File, osName string) []string {
	var problems []string
	ast.Inspect(f, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if x, ok := sel.X.(*ast.Ident); ok && x.Name == osName && environment[sel.Sel.Name] {
			problems = append(problems, "os."+sel.Sel.Name+": only cmd reads the environment")
		}
		return true
	})
	return problems
}
