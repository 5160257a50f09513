package builtin

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// A yamlReader turns YAML nodes into plain values. What an alias stands for is made,
// and counted, once more for each use, so that a few lines can't stand for gigabytes.
type yamlReader struct {
	nodes, bytes int
	within       []*yaml.Node // collections that enclose the present one
}

const (
	maxYAMLNodes = 500_000
	maxDocuments = 10_000
)

func readYAML(text string, all bool) (v any, err error) {
	d := yaml.NewDecoder(strings.NewReader(text))
	docs := []any{}
	var r yamlReader
	for {
		var node yaml.Node
		err := d.Decode(&node)
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, errors.New(strings.TrimPrefix(err.Error(), "yaml: "))
		}
		v, err := r.value(&node)
		if err != nil {
			return nil, err
		}
		if docs = append(docs, v); len(docs) > maxDocuments {
			return nil, fmt.Errorf("there are more than %d documents", maxDocuments)
		}
	}
	switch {
	case all:
		return docs, nil
	case len(docs) == 0:
		return nil, nil
	case len(docs) > 1:
		return nil, fmt.Errorf("the text has %d documents: pass all: true to get them as an array", len(docs))
	}
	return docs[0], nil
}

func (r *yamlReader) value(n *yaml.Node) (any, error) {
	r.nodes++
	r.bytes += len(n.Value)
	if r.nodes > maxYAMLNodes || r.bytes > maxOutput {
		return nil, errors.New("the value is too large once its aliases are resolved")
	}
	switch n.Kind {
	case yaml.DocumentNode:
		if len(n.Content) == 0 {
			return nil, nil
		}
		return r.value(n.Content[0])
	case yaml.AliasNode:
		return r.value(n.Alias)
	case yaml.ScalarNode:
		return scalar(n)
	}
	if slices.Contains(r.within, n) {
		return nil, fmt.Errorf("line %d: the value contains itself", n.Line)
	}
	if len(r.within) >= maxDepth {
		return nil, fmt.Errorf("line %d: nested more than %d levels deep", n.Line, maxDepth)
	}
	r.within = append(r.within, n)
	defer func() { r.within = r.within[:len(r.within)-1] }()
	if n.Kind == yaml.SequenceNode {
		out := []any{}
		for _, e := range n.Content {
			v, err := r.value(e)
			if err != nil {
				return nil, err
			}
			out = append(out, v)
		}
		return out, nil
	}
	return r.mapping(n)
}

func (r *yamlReader) mapping(n *yaml.Node) (any, error) {
	out := map[string]any{}
	var merged []map[string]any
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.ShortTag() == "!!merge" {
			v, err := r.value(value)
			if err != nil {
				return nil, err
			}
			sources, ok := v.([]any)
			if !ok {
				sources = []any{v}
			}
			for _, s := range sources {
				m, ok := s.(map[string]any)
				if !ok {
					return nil, fmt.Errorf("line %d: << takes a mapping, or a list of mappings", key.Line)
				}
				merged = append(merged, m)
			}
			continue
		}
		if key.Kind == yaml.AliasNode {
			key = key.Alias
		}
		if key.Kind != yaml.ScalarNode {
			return nil, fmt.Errorf("line %d: the key is a collection, which has no form in JSON", key.Line)
		}
		// A key may be an alias: it counts for each use, too.
		if r.bytes += len(key.Value); r.bytes > maxOutput {
			return nil, errors.New("the value is too large once its aliases are resolved")
		}
		if _, ok := out[key.Value]; ok {
			return nil, fmt.Errorf("line %d: the key %q is there twice", key.Line, cut(key.Value))
		}
		v, err := r.value(value)
		if err != nil {
			return nil, err
		}
		out[key.Value] = v
	}
	// The mapping's own keys win, then those of the first source.
	for _, m := range merged {
		for k, v := range m {
			if _, ok := out[k]; !ok {
				out[k] = v
			}
		}
	}
	return out, nil
}

// scalar reads a scalar by its tag. Numbers stay exact.
func scalar(n *yaml.Node) (any, error) {
	bad := fmt.Errorf("line %d: %q is no %s", n.Line, cut(n.Value), strings.TrimPrefix(n.ShortTag(), "!!"))
	switch n.ShortTag() {
	case "!!null":
		return nil, nil
	case "!!bool":
		var b bool
		if n.Decode(&b) != nil {
			return nil, bad
		}
		return b, nil
	case "!!int":
		digits := strings.ReplaceAll(n.Value, "_", "")
		if len(digits) > 300 { // see inRange
			return nil, fmt.Errorf("line %d: the number has %d digits, at most 300 are read", n.Line, len(digits))
		}
		if json.Valid([]byte(digits)) {
			return json.Number(digits), nil
		}
		// Base 0 reads 0x, 0o and 0b, and a leading zero as octal, as in YAML 1.1.
		i, ok := new(big.Int).SetString(digits, 0)
		if !ok {
			return nil, bad
		}
		return json.Number(i.String()), nil
	case "!!float":
		var f float64
		switch {
		case n.Decode(&f) != nil:
			return nil, bad
		case math.IsInf(f, 0) || math.IsNaN(f):
			return nil, fmt.Errorf("line %d: %s has no form in JSON: write it as a string", n.Line, cut(n.Value))
		case json.Valid([]byte(n.Value)):
			return json.Number(n.Value), nil
		}
		return f, nil
	}
	return n.Value, nil
}

func writeYAML(raw json.RawMessage, indent int) (string, error) {
	if indent < 2 || indent > 8 {
		return "", errors.New("indent must be from 2 to 8")
	}
	if depth(raw) > maxDepth {
		return "", fmt.Errorf("value is nested more than %d levels deep", maxDepth)
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	left := maxOutput
	node, err := yamlNode(d, 0, indent, &left)
	if err != nil {
		return "", fmt.Errorf("reading value: %w", err)
	}
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(indent)
	if err := e.Encode(node); err != nil {
		return "", fmt.Errorf("writing YAML: %w", err)
	}
	if err := e.Close(); err != nil {
		return "", fmt.Errorf("writing YAML: %w", err)
	}
	return b.String(), nil
}

// yamlNode reads the next JSON value as a node, which keeps the order of keys and the
// digits of numbers. It subtracts the node's indentation from left, the bytes that may
// still be written, because a small value that is nested deeply makes a large text.
func yamlNode(d *json.Decoder, level, indent int, left *int) (*yaml.Node, error) {
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	if *left -= level*indent + 2; *left < 0 {
		return nil, fmt.Errorf("the text would have more than %d bytes", maxOutput)
	}
	scalar := func(tag, text string) *yaml.Node {
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: text}
	}
	switch v := token.(type) {
	case nil:
		return scalar("!!null", "null"), nil
	case bool:
		return scalar("!!bool", strconv.FormatBool(v)), nil
	case string:
		n := scalar("!!str", v)
		if v == "<<" {
			n.Style = yaml.DoubleQuotedStyle // unquoted, it would be read as a merge
		}
		return n, nil
	case json.Number:
		if strings.ContainsAny(v.String(), ".eE") {
			return scalar("!!float", v.String()), nil
		}
		return scalar("!!int", v.String()), nil
	}
	n := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	if token == json.Delim('[') {
		n.Kind, n.Tag = yaml.SequenceNode, "!!seq"
	}
	for d.More() {
		child, err := yamlNode(d, level+1, indent, left)
		if err != nil {
			return nil, err
		}
		n.Content = append(n.Content, child)
	}
	if len(n.Content) == 0 {
		n.Style = yaml.FlowStyle // [] and {}
	}
	_, err = d.Token() // the closing bracket
	return n, err
}
