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
// Policy knows a tool as a pair, the configured server and the raw name that the
// server gives the tool (ToolRef). Its path is the two with "__" between them. Its script
// name is the identifier that a model writes, codemode.server__tool: the path with "_" for
// whatever an ASCII identifier can't have.
//
//	server            raw name             script name
//	github            create_issue         github__create_issue
//	chrome-devtools   click                chrome_devtools__click
//	chrome_devtools   click                chrome_devtools_08550b__click
//	context7          resolve-library-id   context7__resolve_library_id
//	context7          resolve_library-id   context7__resolve_library_id_1bb549
//
// A hash is only in names that would else collide, that are reserved (see Reserved), or
// longer than MaxName bytes:
//
//   - Two servers whose names are written alike, or so that "__" could be in either of two
//     places ("a" and "a--b", which is written a__b): the first of the configuration
//     (Sources.Order) has the plain name before "__", and the other one that name, "_" and
//     six hex digits of a hash of its own name. So tools of two servers never have the
//     same name, whatever they list. A server that is written like a member of codemode
//     ("search-tools") has the digits, too.
//   - Two tools of one server: the plain name is that of the tool that is spelled so,
//     else of the first by raw name. The others have "_" and six hex digits of a hash of
//     the pair after it. (A server can contrive, among its own tools only, that two
//     of these are equal or that one is some tool's name; they get more digits.)
//   - Sources.Kept decides before that: who had a name keeps it.
//
// So no two tools share a name, letter case and Unicode forms make no difference, and
// a server's names depend on the configuration and its own tools: not on what else is
// connected, nor on what was first. What a server lists anew may take a plain name over
// from another of its own tools, unless it is kept.
//
// Lookup takes script names and paths, a script name first. Resolve also takes
// other spellings (chromeDevtools.click) and the names of earlier releases, which had a
// hash in the name of every tool whose path is no identifier.
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
