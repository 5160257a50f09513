package workspace

import (
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
)

// A kind is what files are, by their names in lower case. A pattern with a slash is
// about the last names of a path, or about any folder on the way if it ends in a
// slash; one without is about the last name alone.
type kind struct {
	patterns []string
	words    string
}

// secrets are files that let somebody in, or have what nobody else should read.
var secrets = []kind{
	{[]string{".ssh/", "id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.keystore", "*.ppk", ".gnupg/", "*.kdbx"}, "keys"},
	{[]string{".env", ".env.*", "*.env", ".netrc", "_netrc", ".pgpass", ".my.cnf", ".npmrc", ".yarnrc.yml", ".pypirc", ".git-credentials", ".htpasswd", ".vault-token", "credentials", "credentials.json",
		"credentials.toml", "secrets.json", "secrets.yaml", "secrets.yml", "secrets.toml", "service-account*.json", ".dockercfg", ".docker/config.json", ".m2/settings.xml", ".cargo/credentials", ".terraformrc",
		"*.tfstate", "*.tfvars", ".config/gh/hosts.yml", "hub", ".claude.json", ".password-store/",
		".envrc", ".env~", ".env-*", ".env_*", ".dev.vars", ".secrets", "wp-config.php", "local.settings.json", "client_secret*.json", "serviceaccount*.json", "*-service-account*.json", "*firebase-adminsdk*.json",
		"*.tfstate.*", "*.tfvars.json", ".s3cfg", ".boto", "rclone.conf"}, "passwords and tokens"},
	{[]string{".aws/", ".azure/", ".kube/", ".config/gcloud/", "kubeconfig", ".terraform.d/"}, "access to clouds"},
	{[]string{"*_history", "cookies.sqlite", "login data", "key4.db", "logins.json", "keychains/", "/etc/shadow", "/etc/sudoers", "/etc/sudoers.d/"}, "what a person has typed, or is logged in to"},
}

// notSecret are names that fit a pattern of secrets and have none: examples.
var notSecret = []string{".env.example", ".env.sample", ".env.template", ".env.dist", ".env.defaults", "example.env", "sample.env", "*.pub"}

// later are files that make something run when somebody does something else.
var later = []kind{
	// A folder with a file HEAD may be a bare repository: git takes commands from the config beside it.
	{[]string{".git/", "head", ".husky/", ".githooks/", ".gitmodules", ".pre-commit-config.yaml", "lefthook.yml", "lefthook.yaml", ".lefthook.yml", ".lefthook.yaml", ".gitconfig", ".lintstagedrc", ".lintstagedrc.*"}, "git runs what stands there"},
	{[]string{".github/workflows/", ".github/actions/", ".gitea/workflows/", ".forgejo/workflows/", ".gitlab-ci.yml", ".gitlab-ci.yaml", ".gitlab/ci/", ".circleci/", ".travis.yml", "azure-pipelines*.yml", "azure-pipelines*.yaml", "jenkinsfile", "jenkinsfile.*",
		".buildkite/", "bitbucket-pipelines.yml", ".drone.yml", ".drone.yaml", ".woodpecker.yml", ".woodpecker.yaml", ".woodpecker/", ".tekton/", ".semaphore/", ".cirrus.yml", "appveyor.yml", ".appveyor.yml", "cloudbuild.yaml", "cloudbuild.yml", "buildspec.yml",
		"netlify.toml", "vercel.json"}, "CI runs what stands there"},
	{[]string{".vscode/", ".idea/", ".zed/", ".devcontainer/", "*.code-workspace", ".cursor/", ".claude/", ".mcp.json", "mcp.json", ".codex/", ".gemini/", ".windsurf/", ".envrc", ".nvimrc", ".nvim.lua", ".lvimrc", ".exrc", ".vimrc", ".vim/", ".emacs", ".emacs.d/", ".dir-locals.el", ".ycm_extra_conf.py", "*.sublime-project",
		".roo/", ".kiro/", ".amazonq/", ".continue/", ".opencode/", "opencode.json", "opencode.jsonc", ".gitpod.yml", "mise.toml", ".mise.toml", ".gdbinit", ".lldbinit"}, "an editor or agent runs what stands there"},
	{[]string{".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".profile", ".zshrc", ".zshenv", ".zprofile", ".zlogin", ".zlogout", "config.fish", ".inputrc", ".xinitrc", ".xprofile", ".xsession",
		".config/", ".local/", "application support/", "appdata/roaming/", ".tmux.conf", ".screenrc", ".mailcap", "launchagents/", "launchdaemons/", "systemd/", "/etc/profile", "/etc/profile.d/", "/etc/init.d/", "/etc/rc.local", "microsoft.powershell_profile.ps1", "start menu/programs/startup/"}, "it runs, or says what runs, when somebody logs in or opens a program"},
	{[]string{"crontab", "/etc/cron.d/", "/etc/cron.daily/", "/etc/cron.hourly/", "/etc/cron.weekly/", "/etc/cron.monthly/", "/var/spool/cron/"}, "it runs at set times"},
	{[]string{"sitecustomize.py", "usercustomize.py", ".pythonstartup", ".ipython/", ".jupyter/", ".rprofile", ".irbrc", ".pryrc", ".psqlrc", ".sqliterc", "init.gradle", ".user.ini", ".htaccess"}, "an interpreter runs it by itself"},
	// Also npx: a package that is here is started in the place of the one with the same version.
	{[]string{"node_modules/", "bower_components/", ".yarn/", ".pnp.cjs", ".pnp.loader.mjs", ".venv/", "venv/", "site-packages/", ".bundle/"}, "installed packages are run by what uses them"},
	// Other source files are run, too, and a yes to source files says as much. These are
	// what tools run, or take commands from, that people start for something else.
	{[]string{"package.json", ".pnpmfile.cjs", ".pnpmfile.mjs", "pnpm-workspace.yaml", ".yarnrc", "bunfig.toml", "lerna.json", "*.config.js", "*.config.cjs", "*.config.mjs", "*.config.ts", "*.config.cts", "*.config.mts", ".*rc.js", ".*rc.cjs", ".*rc.mjs", ".*rc.ts",
		".eslintrc", ".eslintrc.*", ".babelrc", ".babelrc.*", "babel.config.*", ".mocharc.*", ".prettierrc", ".prettierrc.*", ".stylelintrc", ".stylelintrc.*", "jest.config.*", ".releaserc", ".releaserc.*",
		"gulpfile.*", "gruntfile.*", "deno.json", "deno.jsonc", "turbo.json", "nx.json", "nodemon.json", "composer.json",
		"pyproject.toml", "setup.py", "setup.cfg", "conftest.py", "pytest.ini", "tox.ini", "noxfile.py", "fabfile.py", "dodo.py", "sconstruct", "snakefile", ".pylintrc", "pylintrc", "mypy.ini", ".coveragerc", "mkdocs.yml", "mkdocs.yaml", "conf.py", "*.pth",
		"build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts", "gradlew", "gradlew.bat", "gradle-wrapper.properties", "mvnw", "mvnw.cmd", "pom.xml", "build.sbt",
		"build.rs", "cargo.toml", ".cargo/config", ".cargo/config.toml", "rakefile", "gemfile", "*.gemspec", ".rspec", ".rubocop.yml", "guardfile", "fastfile", "podfile", "mix.exs", "rebar.config", "package.swift", "project.clj", "build.zig", "build.xml", "*.csproj", "*.fsproj", "*.vbproj", "*.vcxproj", "directory.build.props", "directory.build.targets",
		"makefile", "gnumakefile", "*.mk", "cmakelists.txt", "meson.build", "taskfile.yml", "taskfile.yaml", "taskfile.dist.yml", "magefile.go", "earthfile", "justfile", ".justfile", "procfile", "*.nix",
		"build.bazel", "workspace.bazel", "module.bazel", "*.bzl", ".bazelrc", "dockerfile", "dockerfile.*", "*.dockerfile", "containerfile", "docker-compose*.yml", "docker-compose*.yaml", "compose.yml", "compose.yaml", "compose.*.yml", "compose.*.yaml",
		"vagrantfile", "tiltfile"}, "tools run it, or commands that it names"},
}

// secret says what kind of secret a path names; empty if none.
func secret(name string) string {
	names := foldedNames(name)
	for _, pattern := range notSecret {
		if matches(pattern, names, false) {
			return ""
		}
	}
	return kindOf(secrets, names, filepath.IsAbs(name))
}

// runsLater says by whom a file that the path names is run; empty if by nobody.
func runsLater(name string) string { return kindOf(later, foldedNames(name), filepath.IsAbs(name)) }

func kindOf(kinds []kind, names []string, absolute bool) string {
	for _, k := range kinds {
		if slices.ContainsFunc(k.patterns, func(pattern string) bool { return matches(pattern, names, absolute) }) {
			return k.words
		}
	}
	return ""
}

// foldedNames returns the names in a path as file systems may compare them: those of
// macOS and Windows take names that differ in case for the same, by rules of their own
// for letters beyond ASCII, and some leave out what cannot be seen. Dots and spaces at
// the end are taken away, as Windows does.
func foldedNames(name string) []string {
	folded := strings.Map(foldRune, ligatures.Replace(path.Clean(strings.ReplaceAll(name, `\`, "/"))))
	names := strings.FieldsFunc(folded, func(r rune) bool { return r == '/' })
	for i, n := range names {
		if trimmed := strings.TrimRight(n, ". "); trimmed != "" {
			names[i] = trimmed
		}
	}
	return names
}

// ligatures are letters that stand for several in a name.
var ligatures = strings.NewReplacer("ﬀ", "ff", "ﬁ", "fi", "ﬂ", "fl", "ﬃ", "ffi", "ﬄ", "ffl", "ﬅ", "st", "ﬆ", "st", "ß", "ss", "ẞ", "ss")

// foldRune returns a letter in lower case, also one that only has the same capital (ſ
// is an s); -1 for what cannot be seen.
func foldRune(r rune) rune {
	if unicode.Is(unicode.Cf, r) {
		return -1
	}
	return unicode.ToLower(unicode.ToUpper(r))
}

// matches reports whether a pattern of a kind fits the names in a path.
func matches(pattern string, names []string, absolute bool) bool {
	if len(names) == 0 {
		return false
	}
	one := strings.TrimSuffix(pattern, "/")
	switch named := !strings.Contains(one, "/"); { // most are: nothing is taken apart for them
	case named && one == pattern:
		return fits(one, names[len(names)-1])
	case named:
		return slices.ContainsFunc(names, func(name string) bool { return fits(one, name) })
	}
	rooted := strings.HasPrefix(pattern, "/")
	folder := strings.HasSuffix(pattern, "/")
	wanted := strings.FieldsFunc(pattern, func(r rune) bool { return r == '/' })
	for from := 0; from+len(wanted) <= len(names); from++ {
		if rooted && (from > 0 || !absolute) {
			break
		}
		if !folder && from+len(wanted) < len(names) {
			continue
		}
		all := true
		for i, want := range wanted {
			if all = fits(want, names[from+i]); !all {
				break
			}
		}
		if all {
			return true
		}
	}
	return false
}

// fits reports whether a name is the one that a part of a pattern wants, in which * stands for anything and nothing
// else does.
func fits(want, name string) bool {
	before, after, star := strings.Cut(want, "*")
	switch {
	case !star:
		return want == name
	case !strings.Contains(after, "*"):
		return len(name) >= len(before)+len(after) && strings.HasPrefix(name, before) && strings.HasSuffix(name, after)
	}
	ok, err := path.Match(want, name)
	return ok && err == nil
}
