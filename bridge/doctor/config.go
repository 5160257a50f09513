package doctor

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"

	"codemode-bridge/bridge/setup"
)

// readConfig reads the configuration.
func (up *Checkup) readConfig(context.Context) []Finding {
	c, problems := up.Read()
	if c == nil {
		var all []Finding
		for _, p := range problems {
			all = append(all, p.finding())
		}
		return append(all, fine("", "servers, tools, logins, store and ports are not looked at as long as it cannot be used"))
	}
	up.config = c
	all := []Finding{fine("", fmt.Sprintf("%s, %s", count(len(c.Servers), "server"), count(len(c.Profiles), "profile")))}
	if !c.Evaluates {
		all = append(all, warning("", "evaluation.enabled is false: nothing is asked, only denials hold", "remove it from the configuration"))
	}
	if c.Unrestricted {
		all = append(all, warning("", "eval may call every tool unasked: there is no evaluation.defaultProfile", "name a profile there; profiles add has ready-made ones"))
	}
	if c.NobodyConfirms != "" {
		all = append(all, warning("", c.NobodyConfirms, "give one of them the role admin"))
	}
	if c.NoWorkspace != nil {
		all = append(all, warning("", "evaluation."+c.NoWorkspace.Error(), "name folders that scripts may work on; until then no path is inside"))
	}
	for _, p := range c.Cautions {
		one := p.finding()
		one.Level = Warn
		all = append(all, one)
	}
	return slices.Concat(all, up.configFile(), up.literals())
}

// configFile checks who else can read or change the configuration.
func (up *Checkup) configFile() []Finding {
	info, err := os.Stat(up.File)
	if err != nil || runtime.GOOS == "windows" {
		return nil
	}
	var all []Finding
	name := up.Short(up.File)
	if info.Mode().Perm()&0o002 != 0 {
		all = append(all, failing("", "everybody on this machine can change it", "chmod o-w "+name))
	}
	if text, err := os.ReadFile(up.File); err == nil && info.Mode().Perm()&0o044 != 0 && len(setup.Secrets(text)) > 0 {
		all = append(all, warning("", "it has values of env and headers in it, and others can read it", "chmod 600 "+name+", or name secrets and variables in their place"))
	}
	return all
}

// literals warns of what looks like a secret and stands in the configuration as it is,
// once for each server. What a caution is about is left to that.
func (up *Checkup) literals() (all []Finding) {
	text, err := os.ReadFile(up.File)
	if err != nil {
		return nil
	}
	found := slices.DeleteFunc(setup.LiteralsIn(text, up.ArgSecrets), func(l setup.Literal) bool {
		return slices.ContainsFunc(up.config.Cautions, func(p Problem) bool { return p.Server == l.Server && p.Where == l.Where })
	})
	for i := 0; i < len(found); {
		first, places := found[i], []string{}
		for ; i < len(found) && found[i].Server == first.Server; i++ {
			places = append(places, found[i].Where)
		}
		what := "looks like a secret, and stands"
		if len(places) > 1 {
			what = "look like secrets, and stand"
		}
		all = append(all, warning(first.Server, fmt.Sprintf("%s %s in the configuration as it is", strings.Join(places, ", "), what),
			fmt.Sprintf(`%s, and write "${keyring:%s}" in its place; without a keyring "${file:PATH}"`, up.Typed("secrets set "+first.Name), first.Name)))
	}
	return all
}
