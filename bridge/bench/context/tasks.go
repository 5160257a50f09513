package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// A server is a real one, as a client's configuration starts it.
type server struct {
	name    string
	program string // within node_modules
	args    []string
	env     []string
}

// workspaceMark stands for the folder of the tasks in what is written down here, and in what
// is counted: the length of a temporary folder's name says nothing.
const workspaceMark = "/home/me/shop"

// servers are all of them: the first 2, 5 or 11 take part.
var servers = []server{
	{name: "filesystem", program: "@modelcontextprotocol/server-filesystem/dist/index.js", args: []string{workspaceMark}},
	{name: "memory", program: "@modelcontextprotocol/server-memory/dist/index.js", env: []string{"MEMORY_FILE_PATH=" + workspaceMark + "/.memory.jsonl"}},
	{name: "everything", program: "@modelcontextprotocol/server-everything/dist/index.js"},
	{name: "sequential-thinking", program: "@modelcontextprotocol/server-sequential-thinking/dist/index.js"},
	{name: "context7", program: "@upstash/context7-mcp/dist/index.js"},
	{name: "desktop-commander", program: "@wonderwhy-er/desktop-commander/dist/index.js"},
	{name: "playwright", program: "@playwright/mcp/cli.js", args: []string{"--isolated", "--headless"}},
	{name: "chrome-devtools", program: "chrome-devtools-mcp/build/src/bin/chrome-devtools-mcp.js", args: []string{"--isolated", "--headless"}},
	{name: "github", program: "@modelcontextprotocol/server-github/dist/index.js", env: []string{"GITHUB_PERSONAL_ACCESS_TOKEN=none"}},
	{name: "notion", program: "@notionhq/notion-mcp-server/bin/cli.mjs", env: []string{"NOTION_TOKEN=ntn_none"}},
	{name: "firecrawl", program: "firecrawl-mcp/dist/index.js", env: []string{"FIRECRAWL_API_KEY=fc-none"}},
}

// A call is one call of a server's tool.
type call struct {
	Tool string         `json:"name"` // server__tool
	Args map[string]any `json:"arguments"`
}

// A task is what a person asks for, and what a model sends to do it.
type task struct {
	name    string
	small   bool // one call with a short answer
	ask     string
	find    []string // what it searches for, where it does not see all definitions
	direct  [][]call // turns of calls made together
	scripts []string // turns through the bridge
	answer  string   // what it says in the end
	want    []string // what its last script returns, and its answer contains
}

func file(name string) string { return workspaceMark + "/" + name }

func read(names ...string) (calls []call) {
	for _, n := range names {
		calls = append(calls, call{"filesystem__read_text_file", map[string]any{"path": file(n)}})
	}
	return calls
}

// tasks are the eight. All need the first two servers only: the others are there as they are
// in a client's configuration, unused by most tasks.
var tasks = []task{
	{
		name: "read one short file", small: true, ask: "What is the first thing to do in notes/todo.md?",
		find:    []string{"read file"},
		direct:  [][]call{read("notes/todo.md")},
		scripts: []string{`return await codemode.filesystem__read_text_file({path: "/home/me/shop/notes/todo.md"})`},
		answer:  "The first is: call the printer about invoice 311.", want: []string{"311"},
	}, {
		name: "list a folder", small: true, ask: "Which files are in logs?",
		find:    []string{"list directory"},
		direct:  [][]call{{{"filesystem__list_directory", map[string]any{"path": file("logs")}}}},
		scripts: []string{`return await codemode.filesystem__list_directory({path: "/home/me/shop/logs"})`},
		answer:  "There are monday.log, tuesday.log and wednesday.log.", want: []string{"monday.log", "wednesday.log"},
	}, {
		name: "open points of twelve files", ask: "List every line with OPEN in the Markdown files of docs, with its file.",
		find: []string{"list directory", "read file"},
		direct: [][]call{
			{{"filesystem__list_directory", map[string]any{"path": file("docs")}}},
			{{"filesystem__read_multiple_files", map[string]any{"paths": docs()}}},
		},
		scripts: []string{`const text = x => typeof x === "string" ? x : x.content;
const list = text(await codemode.filesystem__list_directory({path: "/home/me/shop/docs"}));
const names = [...list.matchAll(/\[FILE\] (\S+\.md)/g)].map(m => m[1]);
const all = await Promise.all(names.map(async n => text(await codemode.filesystem__read_text_file({path: "/home/me/shop/docs/" + n})).split("\n").filter(l => l.includes("OPEN")).map(l => n + ": " + l)));
return all.flat();`},
		answer: "Four: 02.md says how to ship, 05.md the tax table, 08.md the refund form, 11.md the holidays.", want: []string{"02.md: OPEN", "11.md: OPEN"},
	}, {
		name: "errors in three logs", ask: "How many lines of each file in logs are errors?",
		find:   []string{"read file"},
		direct: [][]call{read("logs/monday.log", "logs/tuesday.log", "logs/wednesday.log")},
		scripts: []string{`const count = {};
for (const d of ["monday", "tuesday", "wednesday"]) {
  const x = await codemode.filesystem__read_text_file({path: "/home/me/shop/logs/" + d + ".log"});
  count[d] = (x.content ?? x).split("\n").filter(l => l.includes(" ERROR ")).length;
}
return count;`},
		answer: "monday 9, tuesday 12, wednesday 15.", want: []string{`"wednesday":15`},
	}, {
		name: "a total, written down", ask: "Add up the totals of the four orders in orders and write the sum to orders/sum.txt.",
		find: []string{"read file", "write file"},
		direct: [][]call{
			read("orders/1.json", "orders/2.json", "orders/3.json", "orders/4.json"),
			{{"filesystem__write_file", map[string]any{"path": file("orders/sum.txt"), "content": "1000"}}},
		},
		scripts: []string{`const all = await Promise.all([1, 2, 3, 4].map(n => codemode.filesystem__read_text_file({path: "/home/me/shop/orders/" + n + ".json"})));
const sum = all.reduce((s, x) => s + json(x.content ?? x).total, 0);
await codemode.filesystem__write_file({path: "/home/me/shop/orders/sum.txt", content: String(sum)});
return sum;`},
		answer: "The sum, 1000, is in orders/sum.txt.", want: []string{"1000"},
	}, {
		name: "facts kept", ask: "Remember that Ada runs the shop and Ben packs, and that Ben works for Ada. Then tell me what you know of Ben.",
		find: []string{"create entities", "create relations", "search nodes"},
		direct: [][]call{
			{{"memory__create_entities", map[string]any{"entities": []any{
				map[string]any{"name": "Ada", "entityType": "person", "observations": []string{"runs the shop"}},
				map[string]any{"name": "Ben", "entityType": "person", "observations": []string{"packs"}}}}}},
			{{"memory__create_relations", map[string]any{"relations": []any{map[string]any{"from": "Ben", "to": "Ada", "relationType": "works for"}}}}},
			{{"memory__search_nodes", map[string]any{"query": "Ben"}}},
		},
		scripts: []string{`await codemode.memory__create_entities({entities: [{name: "Ada", entityType: "person", observations: ["runs the shop"]}, {name: "Ben", entityType: "person", observations: ["packs"]}]});
await codemode.memory__create_relations({relations: [{from: "Ben", to: "Ada", relationType: "works for"}]});
return await codemode.memory__search_nodes({query: "Ben"});`},
		answer: "Ben packs, and works for Ada.", want: []string{"packs"},
	}, {
		name: "the largest files", ask: "Which three files of the workspace's docs folder are the largest, in bytes?",
		find: []string{"list directory sizes", "file info size"},
		direct: [][]call{
			{{"filesystem__list_directory_with_sizes", map[string]any{"path": file("docs"), "sortBy": "size"}}},
		},
		scripts: []string{`const x = await codemode.filesystem__list_directory_with_sizes({path: "/home/me/shop/docs", sortBy: "size"});
return (x.content ?? x).split("\n").slice(0, 3);`},
		answer: "12.md, 11.md and 10.md.", want: []string{"12.md", "10.md"},
	}, {
		name: "twenty files renamed", ask: "Rename every file in photos from IMG_n.txt to shop-n.txt.",
		find: []string{"list directory", "move rename file"},
		direct: [][]call{
			{{"filesystem__list_directory", map[string]any{"path": file("photos")}}},
			moves(),
		},
		scripts: []string{`const x = await codemode.filesystem__list_directory({path: "/home/me/shop/photos"});
const names = [...(x.content ?? x).matchAll(/IMG_\d+\.txt/g)].map(m => m[0]);
for (const n of names) await codemode.filesystem__move_file({source: "/home/me/shop/photos/" + n, destination: "/home/me/shop/photos/" + n.replace("IMG_", "shop-")});
return names.length;`},
		answer: "All 20 are renamed.", want: []string{"20"},
	},
}

// server is the one whose tools the task needs.
func (t task) server() string {
	name, _, _ := strings.Cut(t.direct[0][0].Tool, "__")
	return name
}

func docs() (all []string) {
	for n := 1; n <= 12; n++ {
		all = append(all, file(fmt.Sprintf("docs/%02d.md", n)))
	}
	return all
}

func moves() (all []call) {
	for n := 1; n <= 20; n++ {
		all = append(all, call{"filesystem__move_file", map[string]any{
			"source": file(fmt.Sprintf("photos/IMG_%d.txt", n)), "destination": file(fmt.Sprintf("photos/shop-%d.txt", n))}})
	}
	return all
}

// furnish makes the files that the tasks are about.
func furnish(dir string) error {
	write := func(name, text string) error {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		return os.WriteFile(path, []byte(text), 0o600)
	}
	files := map[string]string{"notes/todo.md": "- call the printer about invoice 311\n- order boxes\n- ask Ben about Friday\n"}
	open := map[int]string{2: "OPEN: say how we ship\n", 5: "OPEN: the tax table\n", 8: "OPEN: link the refund form\n", 11: "OPEN: the holidays\n"}
	for n := 1; n <= 12; n++ {
		files[fmt.Sprintf("docs/%02d.md", n)] = fmt.Sprintf("# Part %d\n\n", n) +
			strings.Repeat("The shop sends every parcel on the day of the order, and a note with its number goes to whoever ordered it.\n", 6+n) + open[n]
	}
	for i, day := range []string{"monday", "tuesday", "wednesday"} {
		var b strings.Builder
		for n := range 180 {
			level := "INFO"
			if n%(20-4*i) == 3 && n < (9+3*i)*(20-4*i) {
				level = "ERROR"
			}
			fmt.Fprintf(&b, "2026-03-0%dT%02d:%02d:00Z %s request %d answered in %d ms\n", 2+i, n/20, 3*(n%20), level, 1000+n, 7*n%90)
		}
		files["logs/"+day+".log"] = b.String()
	}
	for n := 1; n <= 4; n++ {
		order, err := json.MarshalIndent(map[string]any{"number": 300 + n, "customer": "Customer " + fmt.Sprint(n), "total": 100 * n,
			"lines": strings.Split(strings.Repeat("poster A2, matt;", 3*n), ";")}, "", "  ")
		if err != nil {
			return err
		}
		files[fmt.Sprintf("orders/%d.json", n)] = string(order)
	}
	for n := 1; n <= 20; n++ {
		files[fmt.Sprintf("photos/IMG_%d.txt", n)] = fmt.Sprintf("photo %d", n)
	}
	for name, text := range files {
		if err := write(name, text); err != nil {
			return err
		}
	}
	return nil
}
