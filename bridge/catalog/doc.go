// Package catalog knows the tools: what each is called in a script, how it is
// declared, and how to find it. A Catalog is an immutable snapshot of what all
// upstream servers list; a View is the part of it that one profile may know.
//
//	c := catalog.Build(servers)
//	v := c.View(profile.Sees)
//	v.Search(catalog.SearchQuery{Query: "create issue"})
//
// # Names
//
// A tool has two names. Its path is the configured server's name, "__" and the
// tool's raw name: what policy matches. Its script name is the identifier that
// a model writes, codemode.server__tool; it is the path wherever the path will
// do. It will not do when
//
//   - it is no ASCII identifier (github__create-issue, 3d__render),
//   - it is longer than MaxName bytes, or a reserved word (see Reserved),
//   - two tools share it, as server "a" with tool "b__c" and server "a__b" with
//     tool "c" would. (The configuration refuses such names of servers.)
//
// Then illegal characters become "_" and a suffix follows: "_" and six hex
// digits of a hash of the pair (server, raw name), as in
// context7__resolve_library_id_8f9c48. Every such tool has its suffix, not only
// the second to come, so
//
//   - no two tools share a name: letter case, Unicode forms and the order in
//     which servers answer make no difference;
//   - a name depends on nothing but its own tool, as long as nothing collides;
//     it is the same after a restart;
//   - a new tool never takes over a name that meant another: names without a
//     suffix belong to their path alone, and a collision makes all of its
//     members move to a suffix. (Should two suffixed names still be equal, or
//     be some tool's path, which only a server that wants it can achieve, and
//     only among its own tools, the hash of these is written longer.)
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
//	search_tools({query, server?, limit?})  -> [{name, summary, declaration?, unmatched?, stale?}], best first
//	get_tools({server?, cursor?, limit?})   -> {servers?, tools: [{name, summary, declaration?, stale?}], total, next?}
//	get_tool_schema({name})                 -> {name, summary, declaration, stale?}
//
// An entry of search_tools lists under unmatched the words of the query that
// this tool doesn't have; [] means that nothing fits. The best five entries, and
// pages of at most five tools, come with declarations.
//
// Saved scripts are found by the same functions, under the name run("name"),
// which is how they are called: codemode.run("name", input). They are no tools:
// Lookup does not know them.
//
// # Observed answers
//
// Most tools declare no output schema. What their past answers were like is
// asked of Sources.Observed whenever a discovery function shows a declaration:
//
//	codemode.github__list_issues(args: {repo: string}): Promise<string> /* observed: JSON text of {number: number}[] */
//
// It stands in no text that clients keep, such as the description of an eval
// tool (Declarations), which must not change because a tool was called.
//
// Texts of upstreams reach a model through tsdecl.Plain only: on one line,
// without invisible characters, cut with a count.
//
// # On disk
//
// Save keeps the servers of a catalogue as catalog.json in the cache folder, so
// that the next start can list tools before the servers answer:
//
//	{"version": 1, "digest": "sha256:...", "servers": [{"name": "...", "tools": [{"name": "...", "inputSchema": {...}}]}]}
//
// The digest is that of the bytes of "servers". Load believes nothing else.
package catalog
