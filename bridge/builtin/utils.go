package builtin

import (
	"bytes"
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/csv"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// utils is the server "utils".
func utils() *server {
	s := newServer("utils", "YAML, CSV, Base64 and hashes.")
	add(s, tool{
		name: "yaml_parse", title: "Read YAML",
		description: "Read a YAML text as a value. Anchors, aliases and merge keys are resolved, timestamps stay strings.",
		params: []param{
			{name: "text", kind: text, required: true, doc: "YAML"},
			{name: "all", kind: boolean, doc: "The text has several documents: value is the array of them", fallback: false},
		},
		output: `{"type":"object","required":["value"],"properties":{"value":{}}}`,
		run: func(a args) (any, error) {
			v, err := readYAML(a.text("text", ""), a.flag("all", false))
			return map[string]any{"value": v}, err
		},
	})
	add(s, tool{
		name: "yaml_stringify", title: "Write YAML",
		description: "Write a value as YAML.",
		params: []param{
			{name: "value", kind: value, required: true, doc: "Any JSON value"},
			{name: "indent", kind: whole, doc: "Spaces a level, 2 to 8", fallback: 2},
		},
		output: `{"type":"object","required":["text"],"properties":{"text":{"type":"string"}}}`,
		run: func(a args) (any, error) {
			s, err := writeYAML(a["value"], a.whole("indent", 2))
			return map[string]any{"text": s}, err
		},
	})
	add(s, tool{
		name: "csv_parse", title: "Read CSV",
		description: "Read CSV text (RFC 4180) as rows: objects by column name, or arrays if header is false. All cells are strings.",
		params: []param{
			{name: "text", kind: text, required: true, doc: "CSV"},
			{name: "header", kind: boolean, doc: "The first row has the names of the columns", fallback: true},
			{name: "delimiter", kind: text, doc: "One character", fallback: ","},
		},
		output: `{"type":"object","required":["rows"],"properties":{"columns":{"type":"array","items":{"type":"string"}},` +
			`"rows":{"type":"array","items":{"anyOf":[{"type":"object","additionalProperties":{"type":"string"}},{"type":"array","items":{"type":"string"}}]}}}}`,
		run: func(a args) (any, error) {
			delimiter, err := oneCharacter(a.text("delimiter", ","))
			if err != nil {
				return nil, err
			}
			return readCSV(a.text("text", ""), a.flag("header", true), delimiter)
		},
	})
	add(s, tool{
		name: "csv_stringify", title: "Write CSV",
		description: "Write rows as CSV text with line feeds. Rows are objects (columns: those of the first row, then new ones by name) or arrays. " +
			"null is an empty cell; arrays and objects in cells are written as JSON.",
		params: []param{
			{name: "rows", kind: list, required: true, doc: "Array of objects, or array of arrays"},
			{name: "columns", kind: list, doc: "Names of the columns, in order"},
			{name: "delimiter", kind: text, doc: "One character", fallback: ","},
		},
		output: `{"type":"object","required":["text"],"properties":{"text":{"type":"string"}}}`,
		run: func(a args) (any, error) {
			delimiter, err := oneCharacter(a.text("delimiter", ","))
			if err != nil {
				return nil, err
			}
			s, err := writeCSV(a["rows"], a["columns"], delimiter)
			return map[string]any{"text": s}, err
		},
	})
	add(s, tool{
		name: "base64_encode", title: "Encode Base64",
		description: "The Base64 of a text's UTF-8 bytes.",
		params: []param{
			{name: "text", kind: text, required: true, doc: "What to encode"},
			{name: "url", kind: boolean, doc: "The alphabet for URLs, without padding", fallback: false},
		},
		output: `{"type":"object","required":["text"],"properties":{"text":{"type":"string"}}}`,
		run: func(a args) (any, error) {
			e := base64.StdEncoding
			if a.flag("url", false) {
				e = base64.RawURLEncoding
			}
			return map[string]any{"text": e.EncodeToString([]byte(a.text("text", "")))}, nil
		},
	})
	add(s, tool{
		name: "base64_decode", title: "Decode Base64",
		description: "The bytes behind Base64, of either alphabet, with or without padding and line breaks.",
		params: []param{
			{name: "text", kind: text, required: true, doc: "Base64"},
			{name: "as", kind: text, enum: []string{"text", "hex"}, doc: "How to give the bytes", fallback: "text"},
		},
		output: `{"type":"object","required":["text","bytes"],"properties":{"text":{"type":"string"},"bytes":{"type":"integer"}}}`,
		run: func(a args) (any, error) {
			raw, err := readBase64(a.text("text", ""))
			if err != nil {
				return nil, err
			}
			out := string(raw)
			if a.text("as", "text") == "hex" {
				out = hex.EncodeToString(raw)
			} else if !utf8.Valid(raw) {
				return nil, errors.New(`the bytes are no UTF-8 text: ask for them with as: "hex"`)
			}
			return map[string]any{"text": out, "bytes": len(raw)}, nil
		},
	})
	add(s, tool{
		name: "hash", title: "Hash a text",
		description: "The digest of a text's UTF-8 bytes. md5 and sha1 are for checksums of others only.",
		params: []param{
			{name: "algorithm", kind: text, enum: []string{"sha256", "sha384", "sha512", "sha1", "md5"}, doc: "Which digest", fallback: "sha256"},
			{name: "text", kind: text, required: true, doc: "What to hash"},
			{name: "encoding", kind: text, enum: []string{"hex", "base64"}, doc: "How to write the digest", fallback: "hex"},
		},
		output: `{"type":"object","required":["digest"],"properties":{"digest":{"type":"string"}}}`,
		run: func(a args) (any, error) {
			h := map[string]func() hash.Hash{
				"sha256": sha256.New, "sha384": sha512.New384, "sha512": sha512.New, "sha1": sha1.New, "md5": md5.New,
			}[a.text("algorithm", "sha256")]()
			h.Write([]byte(a.text("text", "")))
			if a.text("encoding", "hex") == "base64" {
				return map[string]any{"digest": base64.StdEncoding.EncodeToString(h.Sum(nil))}, nil
			}
			return map[string]any{"digest": hex.EncodeToString(h.Sum(nil))}, nil
		},
	})
	return s
}

func oneCharacter(s string) (rune, error) {
	r, n := utf8.DecodeRuneInString(s)
	if n != len(s) || n == 0 || strings.ContainsRune("\"\r\n\uFFFD", r) {
		return 0, fmt.Errorf("delimiter must be one character, and no quote or line break, not %q", cut(s))
	}
	return r, nil
}

func readCSV(text string, header bool, delimiter rune) (any, error) {
	r := csv.NewReader(strings.NewReader(strings.TrimPrefix(text, "\uFEFF")))
	r.Comma = delimiter
	r.FieldsPerRecord = -1
	var columns []string
	size := 0 // of the answer: each row repeats the names
	if header {
		first, err := r.Read()
		if err == io.EOF {
			return map[string]any{"columns": []string{}, "rows": []any{}}, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading CSV: %w", err)
		}
		columns = first
		seen := map[string]bool{}
		for i, name := range columns {
			if seen[name] {
				return nil, fmt.Errorf("two columns are called %q: read the text with header: false", cut(name))
			}
			seen[name] = true
			size -= len(columns[i]) // the header itself is counted below
		}
	}
	rows := []any{}
	for {
		record, err := r.Read()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("reading CSV: %w", err)
		}
		for _, cell := range record {
			size += len(cell) + 6
		}
		if !header {
			rows = append(rows, record)
		} else {
			line, _ := r.FieldPos(0)
			if len(record) != len(columns) {
				return nil, fmt.Errorf("line %d has %d cells, the header has %d columns", line, len(record), len(columns))
			}
			row := make(map[string]string, len(record))
			for i, cell := range record {
				row[columns[i]] = cell
				size += len(columns[i])
			}
			rows = append(rows, row)
		}
		if size > maxOutput {
			return nil, fmt.Errorf("the rows would have more than %d bytes as JSON", maxOutput)
		}
	}
	if header {
		return map[string]any{"columns": columns, "rows": rows}, nil
	}
	return map[string]any{"rows": rows}, nil
}

func writeCSV(rawRows, rawColumns json.RawMessage, delimiter rune) (string, error) {
	v, err := decode(rawRows)
	if err != nil {
		return "", fmt.Errorf("reading rows: %w", err)
	}
	rows := v.([]any) // check made sure of the type
	var columns []string
	if rawColumns != nil {
		if err := json.Unmarshal(rawColumns, &columns); err != nil {
			return "", errors.New("columns must be an array of strings")
		}
	} else {
		seen := map[string]bool{}
		for _, row := range rows {
			if row, ok := row.(map[string]any); ok {
				before := len(columns)
				for name := range row {
					if !seen[name] {
						seen[name] = true
						columns = append(columns, name)
					}
				}
				slices.Sort(columns[before:])
			}
		}
	}
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	w.Comma = delimiter
	if columns != nil {
		if err := w.Write(columns); err != nil {
			return "", fmt.Errorf("writing CSV: %w", err)
		}
	}
	for i, row := range rows {
		var record []string
		switch row := row.(type) {
		case []any:
			for _, v := range row {
				record = append(record, cell(v))
			}
		case map[string]any:
			for _, name := range columns {
				record = append(record, cell(row[name]))
			}
			if rawColumns == nil && len(record) == 0 {
				continue
			}
		default:
			return "", fmt.Errorf("row %d is no object and no array", i)
		}
		if err := w.Write(record); err != nil {
			return "", fmt.Errorf("writing CSV: %w", err)
		}
		// Columns that only one row has still make every row longer.
		if w.Flush(); b.Len() > maxOutput {
			return "", fmt.Errorf("the text would have more than %d bytes", maxOutput)
		}
	}
	w.Flush()
	return b.String(), w.Error()
}

func cell(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	}
	raw, err := encode(v)
	if err != nil {
		return ""
	}
	return string(raw)
}

func readBase64(s string) ([]byte, error) {
	plain := strings.Map(func(r rune) rune {
		switch r {
		case ' ', '\t', '\r', '\n', '=':
			return -1
		case '-':
			return '+'
		case '_':
			return '/'
		}
		return r
	}, s)
	raw, err := base64.RawStdEncoding.DecodeString(plain)
	if err != nil {
		return nil, fmt.Errorf("the text is no Base64: %w", err)
	}
	return raw, nil
}
