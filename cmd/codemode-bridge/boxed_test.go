package main_test

import (
	"testing"

	"codemode-bridge/profiles/known"
)

// boxed are the servers whose known files propose a box, with what they are tried with in
// it: TestRealBoxes starts each. In arguments $W is the workspace, $K a key, and $C a
// canary beside both.
var boxed = map[string]boxedServer{
	"filesystem": {
		entry: "@modelcontextprotocol/server-filesystem/dist/index.js", args: []string{"$W"},
		calls: []boxedCall{
			{"write_file", `{"path": "$W/new.txt", "content": "a line"}`, "wrote"},
			{"edit_file", `{"path": "$W/new.txt", "edits": [{"oldText": "a line", "newText": "another"}]}`, "another"},
			{"read_text_file", `{"path": "$W/new.txt"}`, "another"},
			{"create_directory", `{"path": "$W/folder"}`, "created"},
			{"move_file", `{"source": "$W/new.txt", "destination": "$W/folder/moved.txt"}`, "moved"},
			{"search_files", `{"path": "$W", "pattern": "**/moved.txt"}`, "moved.txt"},
		},
		outside: []boxedCall{
			{"read_text_file", `{"path": "$K"}`, ""},
			{"read_text_file", `{"path": "$W/link"}`, ""},
			{"write_file", `{"path": "$C", "content": "overwritten"}`, ""},
			{"move_file", `{"source": "$W/had", "destination": "$C"}`, ""},
		},
	},
	"memory": {
		entry: "@modelcontextprotocol/server-memory/dist/index.js", env: map[string]string{"MEMORY_FILE_PATH": "$W/memory.jsonl"},
		calls: []boxedCall{
			{"create_entities", `{"entities": [{"name": "a", "entityType": "letter", "observations": ["first"]}]}`, "first"},
			{"search_nodes", `{"query": "first"}`, "letter"},
			{"delete_entities", `{"entityNames": ["a"]}`, "deleted"},
		},
	},
	"everything": {
		entry: "@modelcontextprotocol/server-everything/dist/index.js",
		calls: []boxedCall{
			{"echo", `{"message": "hello"}`, "hello"},
			{"get-sum", `{"a": 1, "b": 2}`, "3"},
		},
		outside: []boxedCall{{"gzip-file-as-resource", `{"name": "x.gz", "data": "http://127.0.0.1:$P/"}`, ""}},
	},
	"sequential-thinking": {
		entry: "@modelcontextprotocol/server-sequential-thinking/dist/index.js",
		calls: []boxedCall{{"sequentialthinking", `{"thought": "a", "thoughtNumber": 1, "totalThoughts": 1, "nextThoughtNeeded": false}`, "thoughtHistoryLength"}},
	},
	"context7": { // its tools need its host, so it only lists them
		entry:   "@upstash/context7-mcp/dist/index.js",
		outside: []boxedCall{{"resolve-library-id", `{"query": "q", "libraryName": "react"}`, ""}},
	},
	"desktop-commander": {
		entry: "@wonderwhy-er/desktop-commander/dist/index.js",
		calls: []boxedCall{
			{"write_file", `{"path": "$W/new.txt", "content": "a line\n", "mode": "rewrite"}`, "wrote"},
			{"read_file", `{"path": "$W/new.txt"}`, "a line"},
			{"list_directory", `{"path": "$W"}`, "new.txt"},
			{"start_process", `{"command": "cat $W/new.txt; echo done", "timeout_ms": 5000}`, "done"},
		},
		outside: []boxedCall{
			{"read_file", `{"path": "$K"}`, ""},
			{"read_file", `{"path": "$W/link"}`, ""},
			{"write_file", `{"path": "$C", "content": "overwritten", "mode": "rewrite"}`, ""},
			{"move_file", `{"source": "$W/had", "destination": "$C"}`, ""},
			{"start_process", `{"command": "cat $K; ln $K $W/hard; cat $W/hard; echo overwritten > $C; mv $W/had $C", "timeout_ms": 5000}`, ""},
		},
	},
}

// A boxedServer is a package, and what is called of it.
type boxedServer struct {
	entry   string // its program, below node_modules
	args    []string
	env     map[string]string
	calls   []boxedCall // which work
	outside []boxedCall // which reach nothing, whatever they answer
}

// A boxedCall is a call and what its answer says.
type boxedCall struct{ tool, args, says string }

// A box is proposed only if it was tried.
func TestEveryProposedBoxIsTried(t *testing.T) {
	t.Parallel()
	proposed := 0
	for _, s := range known.All() {
		for _, l := range s.Launch {
			if l.Confine == nil {
				continue
			}
			proposed++
			if _, tried := boxed[s.Name]; !tried {
				t.Errorf("%s proposes a box that TestRealBoxes does not try", s.Name)
			}
		}
	}
	if proposed != len(boxed) {
		t.Errorf("%d boxes are proposed, and %d tried", proposed, len(boxed))
	}
}
