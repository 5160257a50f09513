package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"codemode-bridge/bridge/clients"
	"codemode-bridge/bridge/config"

	"github.com/spf13/cobra"
)

// initCommand writes a first configuration, with the servers that the person's
// clients have.
func initCommand(con *console) *cobra.Command {
	var o initOptions
	names := clientNames()
	c := &cobra.Command{
		Use: "init", Short: "Write a configuration, with the servers that your clients have", Args: noArgs,
		Long: "Looks for MCP servers in the files of your clients (" + strings.Join(names, ", ") + "),\n" +
			"shows them, and writes a configuration with them. Files in the folder that you are in come with it, from\n" +
			"whoever wrote it: they are told of, and read if --from names them. Each server that is on is started once,\n" +
			"because the tools that they list now are what you use: they are accepted as they are, and those that are\n" +
			"new or change later stay hidden from scripts until tools review accepts them. The clients' own files stay\n" +
			"as they are: install --take-over changes one.",
		Example: "  codemode-bridge init\n  codemode-bridge init --from cursor --from ~/work/.mcp.json --dry-run",
		RunE:    func(c *cobra.Command, _ []string) error { return initConfig(c.Context(), con, o) },
	}
	f := c.Flags()
	f.StringArrayVar(&o.from, "from", nil, "look only here: a `client` (its file for you) or a file; may be repeated")
	f.BoolVarP(&o.yes, "yes", "y", false, "write without asking")
	f.BoolVar(&o.dry, "dry-run", false, "show what would be written and write nothing")
	f.BoolVar(&o.pin, "pin", true, "start the servers once and accept the tools that they have now; new and changed ones stay hidden from scripts")
	f.BoolVar(&o.force, "force", false, "replace a configuration that is there; a copy is kept")
	con.jsonFlag(c)
	completeWith(c, "from", cobra.FixedCompletions(names, cobra.ShellCompDirectiveDefault))
	return c
}

type initOptions struct {
	from            []string
	yes, dry, force bool
	pin             bool
}

func clientNames() []string {
	var names []string
	for _, c := range clients.All() {
		names = append(names, c.Name)
	}
	return names
}

func initConfig(ctx context.Context, con *console, o initOptions) error {
	path, err := con.file()
	if err != nil {
		return err
	}
	file, err := clients.ReadFile(path)
	if err != nil {
		return err
	}
	if file.Existed && !o.force && !o.dry {
		return &configError{fmt.Errorf("there is a configuration at %s already", con.shown(path)),
			"--force replaces it and keeps a copy; servers add adds a server, install --take-over those of a client"}
	}
	d := newAdoption(con)
	for name, text := range builtins {
		d.take(name, comparable(config.JSONC(text)))
	}
	if err := findServers(con, d, o.from); err != nil {
		return err
	}
	text, err := firstConfig(con, path, d)
	if err != nil {
		return err
	}
	if con.json && !o.yes && !o.dry {
		return &usageError{errors.New("--json asks nothing: add --yes or --dry-run")}
	}
	if !con.json {
		if err := printFound(con, d); err != nil {
			return err
		}
	}
	taken := d.taking()
	result := map[string]any{"file": path, "written": !o.dry, "servers": adoptedRows(d.all)}
	if len(d.left) > 0 {
		result["left_out"] = d.left
	}
	if o.dry {
		if con.json {
			return con.printJSON(result)
		}
		fmt.Fprintln(con.out)
		printDiff(con.out, con.shown(path), file.Text, text, append(secretsIn(file.Text), secretsOf(d.all)...))
		fmt.Fprintln(con.err, "nothing was written")
		return nil
	}
	question := fmt.Sprintf("write %s with %s of your clients?", con.shown(path), count(len(taken), "server"))
	if on := len(pinnable(taken)); o.pin && on > 0 {
		question = fmt.Sprintf("start %s of these once, now, to accept the tools that they have (--pin=false: start nothing), and %s", count(on, "server"), question)
	}
	if err := confirm(con, question, o.yes); err != nil {
		return err
	}
	if o.pin {
		if err := pinTools(ctx, con, path, text, taken); err != nil {
			return err
		}
		if text, err = firstConfig(con, path, d); err != nil {
			return err
		}
		result["servers"] = adoptedRows(d.all)
	}
	if file.Existed {
		backup, err := file.Backup()
		if err != nil {
			return err
		}
		result["backup"] = backup
		fmt.Fprintf(con.err, "a copy of the old one is at %s\n", homeShort(con, backup))
	}
	file.Private()
	if err := file.Write(text); err != nil {
		return err
	}
	if con.json {
		return con.printJSON(result)
	}
	fmt.Fprintf(con.err, "wrote %s, which only you can read\n", homeShort(con, path))
	if slices.ContainsFunc(taken, func(s *adopted) bool { return len(s.Secrets) > 0 }) {
		con.told(`values of env and headers stand in it as your clients had them; better: write "${NAME}" and set NAME`)
	}
	sayPinned(con, taken)
	nextSteps(con, d)
	return nil
}

// nextSteps says in three lines what to do with a new configuration.
func nextSteps(con *console, d *adoption) {
	client := "CLIENT"
	for _, s := range d.all {
		if i := slices.IndexFunc(clients.All(), func(c clients.Client) bool { return strings.HasPrefix(s.from[0], c.Title+" (") }); i >= 0 {
			client = clients.All()[i].Name
			break
		}
	}
	with := ""
	if con.configPath != "" {
		with = " --config " + con.configPath
	}
	fmt.Fprintf(con.err, "next: codemode-bridge doctor%s\n", with)
	fmt.Fprintf(con.err, "      codemode-bridge install %s%s\n", client, with)
	fmt.Fprintln(con.err, "      the same with --take-over, so that the model cannot call its servers past the bridge")
}

// findServers adds the servers that all clients have for this user, or those of the
// clients and files that the person names. A file of the folder has to be
// named: it may have come with a repository, and a server is a program.
func findServers(con *console, d *adoption, from []string) error {
	system := clientSystem(con)
	var places []clients.Place
	if len(from) == 0 {
		for _, place := range clients.Places(system) {
			if place.Scope == clients.User {
				places = append(places, place)
			} else {
				d.leave(place)
			}
		}
	}
	for _, name := range from {
		if c, ok := clients.Find(name); ok {
			for _, scope := range c.Scopes {
				place, err := c.Place(system, scope)
				switch {
				case err != nil:
				case scope == clients.Project:
					d.leave(place)
				default:
					places = append(places, place)
				}
			}
			continue
		}
		path, err := filepath.Abs(name)
		if err != nil {
			return fmt.Errorf("finding %s: %w", name, err)
		}
		if _, err := os.Stat(path); err != nil {
			return &usageError{fmt.Errorf("%q is neither a file nor a client; the clients are: %s", name, strings.Join(clientNames(), ", "))}
		}
		file, err := clients.ReadFile(path)
		if err != nil {
			return err
		}
		place, err := clients.At(system, path, file.Text)
		if err != nil {
			return err
		}
		places = append(places, place)
	}
	d.left = slices.DeleteFunc(d.left, func(l leftOut) bool {
		return slices.ContainsFunc(places, func(p clients.Place) bool { return p.File == l.path && p.Scope != clients.User })
	})
	for _, place := range places {
		file, err := clients.ReadFile(place.File)
		if err == nil && !file.Existed {
			continue
		}
		var servers []clients.Server
		if err == nil {
			servers, err = place.Servers(file.Text)
		}
		if err != nil {
			if len(from) > 0 {
				return err
			}
			fmt.Fprintf(con.err, "passed over %s: %v\n", place, err)
			continue
		}
		for _, s := range servers {
			d.add(s, place)
		}
	}
	return nil
}

// taking are the servers that go into the configuration.
func (d *adoption) taking() []*adopted {
	return slices.DeleteFunc(slices.Clone(d.all), func(s *adopted) bool { return s.Problem != "" || s.known })
}

func secretsOf(all []*adopted) []string {
	var secrets []string
	for _, s := range all {
		secrets = append(secrets, s.Secrets...)
	}
	return secrets
}

func printFound(con *console, d *adoption) error {
	for _, l := range d.left {
		con.told("left out: %s of %s; whoever wrote this folder may have named the programs (--from %s takes them, beside a --from for each client that you want)",
			count(l.Servers, "server"), l.Place, l.From)
	}
	if len(d.all) == 0 {
		fmt.Fprintln(con.err, "your clients have no servers that could be found")
		return nil
	}
	return printAdopted(con, d.all)
}

// builtins are the servers that any configuration can have.
var builtins = map[string]string{
	"time":  `{ "type": "builtin", "builtin": "time" }`,
	"utils": `{ "type": "builtin", "builtin": "utils" }`,
}

const firstHead = `// The configuration of codemode-bridge. After an edit, look for mistakes with
//
//	codemode-bridge check
//
// A bridge that runs takes an edit over by itself.
{
  // Tells this configuration from others with the same audit log, also when the
  // file is moved: paused runs and open questions belong to it. Give a copy
  // another id.
  "id": %q,

  // The MCP servers that scripts may call. A tool is called by the name of its
  // server and its own, as in codemode.time__now({}). "${NAME}" is a variable
  // of the environment. A program sees those in its env and passEnv, and no others.
  // With "quarantine", tools that are new or have changed stay hidden from scripts
  // until they are accepted: codemode-bridge tools review.
  "servers": {
`

const firstTail = `
    // These two are part of the bridge.
    "time": { "type": "builtin", "builtin": "time" },
    "utils": { "type": "builtin", "builtin": "utils" },
  },

  // What scripts may do. Each profile is a tool of its own for the client
  // (codemode_eval_supervised); the default profile binds eval as well.
  "evaluation": {
    "defaultProfile": "supervised",
    // What nobody can judge is asked about.
    "risk": { "unknown": "medium" },
    "profiles": {
      "supervised": {
        // What no list and no rule names is asked about unless it only reads.
        "default": "risk",
        // Tools that are never called, or always after a question:
        // "denylist": ["github__delete_*"],
        // "asklist": ["filesystem__write_*"],
        // Where nobody can be asked, the call is denied.
        "elicitationFallback": "deny",
        "rules": [
          { "tools": ["time__*", "utils__*"], "action": "allow", "risk": "low" },
        ],
      },
    },
  },
}
`

// firstConfig is the text of a new configuration. A server that it could not
// be used with gets a Problem and is left out.
func firstConfig(con *console, path string, d *adoption) ([]byte, error) {
	id := "config-" + strings.ToLower(rand.Text()[:8])
	for {
		var text strings.Builder
		fmt.Fprintf(&text, firstHead, id)
		for _, s := range d.taking() {
			fmt.Fprintf(&text, "    %q: %s,\n", s.as, strings.ReplaceAll(string(s.text()), "\n", "\n    "))
		}
		text.WriteString(strings.TrimPrefix(firstTail, strings.Repeat("\n", 1-min(1, len(d.taking())))))
		_, err := config.Parse(path, []byte(text.String()), con.env, con.policy(path))
		if err == nil {
			return []byte(text.String()), nil
		}
		var problems config.Problems
		if !errors.As(err, &problems) {
			return nil, err
		}
		dropped := false
		for _, problem := range problems {
			for _, s := range d.taking() {
				if problem.Path == "/servers/"+s.as || strings.HasPrefix(problem.Path, "/servers/"+s.as+"/") {
					s.Problem, dropped = firstProblem(problem), true
				}
			}
		}
		if !dropped {
			return nil, fmt.Errorf("writing a configuration: %w", err)
		}
	}
}
