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
	"playwright": {
		entry: "@playwright/mcp/cli.js", args: []string{"--headless", "--isolated"},
		calls: []boxedCall{
			{"browser_navigate", `{"url": "data:text/html,<h1>hello</h1>"}`, "hello"},
			{"browser_take_screenshot", `{"filename": "$W/page.png", "type": "png"}`, "page.png"},
		},
		outside: []boxedCall{
			{"browser_navigate", `{"url": "file://$K"}`, ""},
			{"browser_take_screenshot", `{"filename": "$C", "type": "png"}`, ""},
		},
	},
	"chrome-devtools": {
		entry: "chrome-devtools-mcp/build/src/bin/chrome-devtools-mcp.js", args: []string{"--headless", "--isolated"},
		env: map[string]string{"CHROME_DEVTOOLS_MCP_NO_UPDATE_CHECKS": "1", "CHROME_DEVTOOLS_MCP_NO_USAGE_STATISTICS": "1"},
		calls: []boxedCall{
			{"new_page", `{"url": "data:text/html,<h1>hello</h1>"}`, "hello"},
		},
		outside: []boxedCall{
			{"new_page", `{"url": "file://$K"}`, ""},
			{"take_snapshot", `{"pageId": 3}`, ""},
		},
	},

	"sqlite-dbhub": {
		entry: "../sqlite/node_modules/@bytebase/dbhub/dist/index.js", args: []string{"--transport", "stdio", "--dsn", "sqlite://$W/app.db"},
		calls: []boxedCall{
			{"execute_sql", `{"sql": "CREATE TABLE t (a TEXT); INSERT INTO t VALUES ('first'); PRAGMA journal_mode = WAL"}`, "success"},
			{"execute_sql", `{"sql": "SELECT a FROM t"}`, "first"},
			{"search_objects", `{"object_type": "table"}`, "success"},
		},
		outside: []boxedCall{
			{"execute_sql", `{"sql": "ATTACH '$C' AS c; CREATE TABLE c.t (a)"}`, ""},
			{"execute_sql", `{"sql": "ATTACH '$K.db' AS k; CREATE TABLE k.t (a)"}`, ""},
			{"execute_sql", `{"sql": "VACUUM INTO '$C'"}`, ""},
		},
	},
	// The tools of these need their service and a key, so they only list them.
	"airtable":     {entry: "airtable-mcp-server/dist/main.js", env: map[string]string{"AIRTABLE_API_KEY": "pat.x"}},
	"brave-search": {entry: "@modelcontextprotocol/server-brave-search/dist/index.js", env: map[string]string{"BRAVE_API_KEY": "x"}},
	"brave":        {entry: "@brave/brave-search-mcp-server/dist/index.js", env: map[string]string{"BRAVE_API_KEY": "x"}},
	"github":       {entry: "@modelcontextprotocol/server-github/dist/index.js", env: map[string]string{"GITHUB_PERSONAL_ACCESS_TOKEN": "x"}},
	"google-maps":  {entry: "@modelcontextprotocol/server-google-maps/dist/index.js", env: map[string]string{"GOOGLE_MAPS_API_KEY": "x"}},
	"hubspot":      {entry: "@hubspot/mcp-server/dist/index.js", env: map[string]string{"PRIVATE_APP_ACCESS_TOKEN": "x"}},
	"notion":       {entry: "@notionhq/notion-mcp-server/bin/cli.mjs", env: map[string]string{"NOTION_TOKEN": "x"}},
	"perplexity":   {entry: "@perplexity-ai/mcp-server/dist/index.js", env: map[string]string{"PERPLEXITY_API_KEY": "x"}},
	"slack":        {entry: "@modelcontextprotocol/server-slack/dist/index.js", env: map[string]string{"SLACK_BOT_TOKEN": "x", "SLACK_TEAM_ID": "T1"}},
	"tavily":       {entry: "tavily-mcp/build/index.js", env: map[string]string{"TAVILY_API_KEY": "x"}},
	"sentry":       {entry: "@sentry/mcp-server/dist/index.js", env: map[string]string{"SENTRY_ACCESS_TOKEN": "x"}},
	"figma":        {entry: "figma-developer-mcp/dist/bin.js", env: map[string]string{"FIGMA_API_KEY": "x", "FRAMELINK_TELEMETRY": "off"}, args: []string{"--stdio", "--skip-image-downloads"}},
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
