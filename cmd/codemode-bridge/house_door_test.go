//go:build !race

package main_test

// There is one door to the tools of servers: the gate. Two methods send something to a
// server, Call and Read of upstream.Set. Nothing names them: the gate has them through
// interfaces of its own, and no other interface could hold them.

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"slices"
	"testing"
)

// gatePath is the package that may send.
const gatePath = module + "/bridge/gate"

// senders are the methods that send something to a server, and those that stand for them
// in the gate.
var senders = []string{
	"(*" + module + "/bridge/upstream.Set).Call",
	"(*" + module + "/bridge/upstream.Set).Read",
	"(" + gatePath + ".Caller).Call",
	"(" + gatePath + ".Reader).Read",
}

// otherDoors returns where a package other than the gate names a sender, or has an
// interface that could hold one: one with a method of such a name which sender
// implements.
func otherDoors(path string, info *types.Info, sender types.Type, place func(token.Pos) string) (bad []string) {
	if path == gatePath {
		return nil
	}
	for id, used := range info.Uses {
		if method, ok := used.(*types.Func); ok && slices.Contains(senders, method.FullName()) {
			bad = append(bad, fmt.Sprintf("%s: %s is used", place(id.Pos()), method.FullName()))
		}
	}
	for e, tv := range info.Types {
		written, ok := e.(*ast.InterfaceType)
		if !ok {
			continue
		}
		holds, ok := tv.Type.(*types.Interface)
		if !ok || !types.Implements(sender, holds) {
			continue
		}
		for i := range holds.NumMethods() {
			if name := holds.Method(i).Name(); name == "Call" || name == "Read" {
				bad = append(bad, fmt.Sprintf("%s: an interface with %s that can hold the servers", place(written.Pos()), name))
			}
		}
	}
	slices.Sort(bad)
	return bad
}

func TestOneDoor(t *testing.T) {
	t.Parallel()
	pkgs := loadPackages(t)
	var sender types.Type
	declared := make(map[string]bool)
	for _, p := range pkgs {
		if p.PkgPath == module+"/bridge/upstream" {
			sender = types.NewPointer(p.Types.Scope().Lookup("Set").Type())
		}
		for _, o := range p.TypesInfo.Defs {
			if method, ok := o.(*types.Func); ok {
				declared[method.FullName()] = true
			}
		}
	}
	for _, name := range senders {
		if !declared[name] {
			t.Fatalf("there is no %s any more: the rule watches nothing", name)
		}
	}
	for _, p := range pkgs {
		for _, bad := range otherDoors(p.PkgPath, p.TypesInfo, sender, func(at token.Pos) string { return p.Fset.Position(at).String() }) {
			t.Error(bad)
		}
	}
}

func TestOneDoorCanFail(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{
		"func f(s *Set) { s.Close() }":                                0,
		"func f(s *Set) { s.Call() }":                                 1,
		"func f(s *Set) { send := s.Read; send() }":                   1,
		"func f(s interface{ Close() }) {}":                           0,
		"type door interface { Close(); Call() }":                     1,
		"func f(s any) { s.(interface{ Read() }).Read() }":            1,
		"type other interface { Call(int) }; type t struct { other }": 0,
	} {
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, "x.go", "package upstream\ntype Set struct{}\nfunc (*Set) Call() {}\nfunc (*Set) Read() {}\nfunc (*Set) Close() {}\n"+text, 0)
		if err != nil {
			t.Fatal(err)
		}
		info := &types.Info{Uses: map[*ast.Ident]types.Object{}, Types: map[ast.Expr]types.TypeAndValue{}}
		pkg, err := new(types.Config).Check(module+"/bridge/upstream", set, []*ast.File{file}, info)
		if err != nil {
			t.Fatal(err)
		}
		sender := types.NewPointer(pkg.Scope().Lookup("Set").Type())
		got := otherDoors("elsewhere", info, sender, func(at token.Pos) string { return set.Position(at).String() })
		if len(got) != want {
			t.Errorf("%s: %q, want %d", text, got, want)
		}
		if got := otherDoors(gatePath, info, sender, nil); len(got) != 0 {
			t.Errorf("%s: the gate may not: %q", text, got)
		}
	}
}
