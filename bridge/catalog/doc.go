// Package catalog knows the tools: their names in scripts, their declarations, and
// how to find them. A Catalog is an immutable snapshot of what all upstream servers
// list; a View is the part of it that one profile may see.
//
//	c := catalog.Build(servers)
//	v := c.View(profile.Sees)
//	v.Search(catalog.SearchQuery{Query: "create issue"})
//
// # Names
//
// A tool has two names. Its path is the configured server's name, "__" and the
// tool's raw name: what policy matches. Its script name is the identifier that
// a model writes, codemode.server__tool. It is the path, unless
//
//   - the path is not an ASCII identifier (github__create-issue, 3d__render),
//   - it is longer than MaxName bytes, or a reserved word (see Reserved),
//   - two tools share it, as server "a" with tool "b__c" and server "a__b" with
//     tool "c" would. (The configuration refuses such names of servers.)
//
// Then illegal characters become "_" and a suffix follows: "_" and six hex
// digits of a hash of the pair (server, raw name), as in
// context7__resolve_library_id_8f9c48. Every such tool has its suffix, not only
// the second one listed, so
//
//   - no two tools share a name: letter case, Unicode forms and the order in
//     which servers answer make no difference;
//   - a name depends on nothing but its own tool, as long as nothing collides;
//     it is the same after a restart;
//   - a new tool never takes over a name that meant another: names without a
//     suffix belong to their path alone, and a collision makes all of its
//     members move to a suffix. (A server can contrive, among its own tools only,
//     that two suffixed names are equal or that one is some tool's path; these get
//     more digits of the hash.)
//
// Lookup takes script names and paths. A path that two tools share finds
// neither.
//
// # Discovery
//
// The functions search_tools, get_tools and get_tool_schema are tools of the
// reserved server "", made by Build. Discover answers them, and gives the same
// answer inside a script and as MCP tools:
//
//	search_tools({query, server?, limit?})  -> [{name, summary, declaration?, unmatched?}], best first
//	get_tools({server?, cursor?, limit?})   -> {servers?, tools: [{name, summary, declaration?}], total, next?}
//	get_tool_schema({name})                 -> {name, summary, declaration}
//
// An entry of search_tools lists under unmatched the words of the query that
// this tool doesn't have; [] means that nothing fits. The best entries, at most five,
// and pages of at most five tools, come with declarations. Without a limit the answer
// to a search stays within some 400 tokens.
//
// What such a list cannot say stands in a note beside the answer: which words of the query
// no tool has if nothing was found, and which servers could not be searched, and why (see
// Absent). An eval tool has it among its notes, search_tools as a tool after the list.
//
// The same functions find saved scripts, under the name run("name"), as they are
// called: codemode.run("name", input). They are not tools: Lookup does not know
// them.
//
// # Observed answers
//
// Most tools declare no output schema. Whenever a discovery function shows a
// declaration, Sources.Observed says what the tool's past answers looked like:
//
//	codemode.github__list_issues(args: {repo: string}): Promise<string> /* observed: JSON text of {number: number}[] */
//
// Text that clients keep, such as the description of an eval tool (Declarations),
// leaves it out: it must not change because a tool was called.
//
// Upstreams' text reaches a model through tsdecl.Plain only: on one line, without
// invisible characters, cut with a count.
//
// # On disk
//
// Save keeps the servers of a catalogue as catalog.json in the cache folder, so
// that the next start can list tools before the servers answer:
//
//	{"version": 1, "digest": "sha256:...", "servers": [{"name": "...", "tools": [{"name": "...", "inputSchema": {...}}]}]}
//
// The digest is that of the bytes of "servers". Load rejects anything else.
package catalog
