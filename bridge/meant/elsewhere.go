package meant

const (
	boxHint   = `write "confine": {"write": ["workspace"], "net": "none"}`
	reachHint = `write "net": "none", or "net": ["api.example.com"]`
)

const profileHint = `what runs without asking is said by a profile: "evaluation": {"profiles": {"NAME": {"allowlist": ["SERVER__TOOL"]}}}`

// Elsewhere says what to write in a configuration instead of keys that other programs
// read from such a file. It is consulted before a near name is looked for.
var Elsewhere = map[string]string{
	"alwaysAllow":   profileHint,
	"autoApprove":   profileHint,
	"autoapprove":   profileHint,
	"alwaysapprove": profileHint,
	"trust":         profileHint,
	"approvalMode":  profileHint,
	"permissions":   profileHint,

	"allowedTools":    `name the tools in "tools": {"allow": [...]}`,
	"includeTools":    `name the tools in "tools": {"allow": [...]}`,
	"enabledTools":    `name the tools in "tools": {"allow": [...]}`,
	"enabled_tools":   `name the tools in "tools": {"allow": [...]}`,
	"excludeTools":    `name the tools in "tools": {"deny": [...]}`,
	"disabledTools":   `name the tools in "tools": {"deny": [...]}`,
	"disabled_tools":  `name the tools in "tools": {"deny": [...]}`,
	"httpUrl":         `write "url"`,
	"serverUrl":       `write "url"`,
	"uri":             `write "url"`,
	"endpoint":        `write "url"`,
	"baseUrl":         `write "url"`,
	"baseURL":         `write "url"`,
	"spec":            `write "openapi"`,
	"swagger":         `write "openapi"; it takes documents of OpenAPI 3`,
	"transport":       `write "type": "stdio", "http" or "sse"`,
	"transportType":   `write "type": "stdio", "http" or "sse"`,
	"environment":     `write "env"`,
	"http_headers":    `write "headers"`,
	"requestInit":     `write "headers"`,
	"workingDir":      `write "cwd"`,
	"envFile":         `name each variable in "env": {"NAME": "${NAME}"}, or let it through with "passEnv": ["NAME"]`,
	"sandboxEnabled":  boxHint,
	"inputs":          `there is nobody to ask for an input here; use variables: "${NAME}"`,
	"mcp":             `write what is inside it at the top: "servers": {...}`,
	"mcp_servers":     `write "servers"`,
	"context_servers": `write "servers"`,

	"allowWrite":     `write "write": ["workspace"]`,
	"allowRead":      `write "read": ["~/notes"]`,
	"denyRead":       `a box reads nothing but what "read" and "write" name`,
	"denyWrite":      `a box writes nothing but what "write" names; "read" makes a folder within one read-only`,
	"network":        reachHint,
	"allowedDomains": reachHint,

	"bearer_token_env_var": `write "headers": {"Authorization": "Bearer ${NAME}"}`,
	"whitelist":            `write "allowlist"`,
	"blacklist":            `write "denylist"`,
	"password":             `write "tokens": [{"name": "...", "token": "${NAME}"}]`,
}
