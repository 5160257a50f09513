package realm

import (
	"fmt"
	"strings"

	"github.com/dop251/goja"

	"codemode-bridge/sandbox/source"
	"codemode-bridge/sandbox/values"
	"codemode-bridge/sandbox/wire"
)

// call makes one call: number it, send it, return the promise of its answer.
// The arguments are converted now, once; what the script does to its objects
// later changes nothing. What is wrong with them rejects the promise, as an
// async function would.
func (r *realm) call(op wire.Op, name, label string, encode func() ([]byte, error)) goja.Value {
	p := &pending{op: op, name: name, label: label}
	p.at, p.stack = r.here()
	p.at = r.script.CallStart(p.at)
	if len(p.stack) > 0 { // agrees with the position
		p.stack[0] = p.stack[0][:strings.LastIndexByte(p.stack[0], '(')] + source.PlaceText(p.at)
	}
	p.promise, p.resolve, p.reject = r.VM.NewPromise()
	promise := r.VM.ToValue(p.promise)
	args, err := encode()
	if err == nil && len(name) > wire.MaxName {
		err = &values.TypeError{Message: fmt.Sprintf("%s: a name of %d bytes, at most %d", values.Cut(label, 80), len(name), wire.MaxName)}
	}
	if err == nil {
		p.number, err = r.host.Call(op, name, args, p.at)
	}
	if op == wire.OpRun {
		p.input = args
	}
	if err != nil {
		p.answered, p.failed = true, true
		if limit := limitOf(err); limit != nil {
			panic(err)
		}
		r.callOf[p.promise] = p
		defer r.discard(p)
		r.must(p.reject(r.errorValue(p, err)))
		return promise
	}
	r.pending[p.number] = p
	r.callOf[p.promise] = p
	return promise
}

// must hands an uncatchable error on to the engine that called us.
func (r *realm) must(err error) {
	if err != nil {
		panic(err)
	}
}
