// Package policycmd loads a configuration with the documents that it includes, judges that it loosens none of
// them, and has the commands that sign documents.
package policycmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/confirmed"
	"codemode-bridge/bridge/include"
	"codemode-bridge/bridge/pending"
	"codemode-bridge/bridge/policydoc"
	"codemode-bridge/profiles"
)

const (
	maxDepth     = 4  // of files that include files
	maxDocuments = 32 // of one configuration
	// maxJudged is how many conflicts are judged one by one.
	maxJudged = 64
)

// A Loader reads configurations with what they include.
type Loader struct {
	Env    config.Env
	Policy profiles.Options
	Store  *include.Store
	// Now fetches each document, however fresh the kept copy is.
	Now bool
	// Got, if not nil, is told of each document from an address.
	Got func(include.Document)
}

// Open returns a loader that keeps its copies in the state folder that the environment names.
func Open(env config.Env, policy profiles.Options) *Loader {
	l := &Loader{Env: env, Policy: policy, Store: &include.Store{Token: tokens(env)}}
	if places, err := config.Paths(env); err == nil {
		l.Store.Dir = filepath.Join(places.StateDir, "include")
	}
	return l
}

// A LoosensError says what a configuration would loosen of the documents that it includes.
type LoosensError struct {
	config.Problems
	// Held is the configuration in which the documents win; nil if they and the rest of the
	// file do not fit together.
	Held *config.Config
}

func (e *LoosensError) Unwrap() error { return e.Problems }

// Load reads the configuration of the texts, which have no documents yet. An error of what is written is [config.Problems];
// where something would be loosened it is a [LoosensError].
func (l *Loader) Load(ctx context.Context, texts config.Texts) (*config.Config, error) {
	docs, err := l.documents(ctx, texts)
	if err != nil {
		return nil, err
	}
	texts.Included = config.Included{Documents: docs}.String()
	cfg, err := texts.Parse(l.Env, l.Policy)
	if err != nil || len(docs) == 0 || len(cfg.Conflicts()) == 0 {
		return cfg, err
	}
	return l.judge(texts, cfg, docs)
}

// documents fetches what a configuration includes, the lowest first.
func (l *Loader) documents(ctx context.Context, texts config.Texts) ([]config.Document, error) {
	g := &gathering{Loader: l, ctx: ctx}
	err := g.of(texts.Name, []byte(texts.File), []string{confirmed.Resolve(texts.Name)})
	return slices.Concat(g.lowest, g.all), err
}

type gathering struct {
	*Loader
	ctx context.Context
	// lowest are the documents at addresses that the main file names. They lie below every file, wherever
	// they stand in the list: whoever may write a file that is included could loosen them from below.
	lowest, all []config.Document
}

// of adds what a file includes. Chain are the files that led here, with their links resolved.
func (g *gathering) of(name string, text []byte, chain []string) error {
	entries, err := config.Includes(name, text)
	if err != nil {
		return err
	}
	for i := range entries {
		e := &entries[i]
		switch {
		case len(g.lowest)+len(g.all) >= maxDocuments:
			return e.Problem(fmt.Sprintf("more than %d documents are included", maxDocuments), "")
		case e.URL != "":
			err = g.fetched(e, len(chain) == 1)
		default:
			err = g.file(e, name, chain)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (g *gathering) file(e *config.Entry, from string, chain []string) error {
	path, err := filepath.Abs(from)
	if err != nil {
		return e.Problem("its folder is not known: "+err.Error(), "")
	}
	shown := e.File
	if !filepath.IsAbs(shown) {
		path, shown = filepath.Join(filepath.Dir(path), e.File), filepath.Join(filepath.Dir(from), e.File)
	} else {
		path = shown
	}
	resolved := confirmed.Resolve(path)
	switch {
	case slices.Contains(chain, resolved):
		return e.Problem(fmt.Sprintf("%s includes itself", shown), "each file may be included once on the way to it")
	case len(chain) > maxDepth:
		return e.Problem(fmt.Sprintf("files are included more than %d deep", maxDepth), "include it from a file that is nearer")
	}
	text, err := readFile(path)
	if err != nil {
		return e.Problem("the included file cannot be read: "+err.Error(), "paths start from the folder of the file that includes them")
	}
	if err := g.of(shown, text, append(slices.Clone(chain), resolved)); err != nil {
		return err
	}
	g.all = append(g.all, config.Document{Name: shown, Ref: path, Text: string(text)})
	return nil
}

// readFile reads a regular file, up to one byte more than a configuration may have.
func readFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%s is not there", path)
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readAll(f)
}

func readAll(f *os.File) ([]byte, error) {
	return io.ReadAll(io.LimitReader(f, policydoc.MaxDocument+1))
}

func (g *gathering) fetched(e *config.Entry, main bool) error {
	if g.Store.Dir == "" {
		return e.Problem("there is no folder for its copy", "set HOME, or XDG_STATE_HOME")
	}
	doc, err := g.Store.Get(g.ctx, e.Include, g.Now)
	if err != nil {
		return e.Problem("the included document cannot be used: "+err.Error(), "see that the address is right, that this machine reaches it, and that it has what sha256 or key says; or ask whoever publishes the document")
	}
	if g.Got != nil {
		g.Got(doc)
	}
	if inner, err := config.Includes(e.URL, doc.Text); err != nil {
		return err
	} else if len(inner) > 0 {
		return inner[0].Problem("a document from an address may include nothing", "include both in the file")
	}
	into := &g.all
	if main {
		into = &g.lowest
	}
	*into = append(*into, config.Document{Name: e.URL, Ref: e.Ref(), Text: string(doc.Text), Key: e.Key, Serial: doc.Envelope.Serial})
	return nil
}

// judge refuses a configuration that loosens what a document says. For each document it compares the
// configuration with the one in which nothing above the document contradicts it.
func (l *Loader) judge(texts config.Texts, cfg *config.Config, docs []config.Document) (*config.Config, error) {
	refused := &LoosensError{}
	var without []string
	for first := 1; first <= len(docs); first++ {
		with := func(take ...string) (*config.Config, error) { return texts.Keeping(first, take, l.Env, l.Policy) }
		base, err := with()
		if err != nil {
			return nil, fmt.Errorf("without what contradicts the documents that it includes, the configuration cannot be read, and so cannot be compared with them: %w", err)
		}
		why := looser(base, cfg)
		if len(why) == 0 {
			continue
		}
		conflicts := base.Conflicts()
		said := len(refused.Problems)
		for _, c := range conflicts[:min(len(conflicts), maxJudged)] {
			one, err := with(c.Path)
			if err != nil { // it can be read only together with others, which may not hold
				without = append(without, c.Path)
				continue
			}
			if why := looser(base, one); len(why) > 0 {
				refused.add(c, why)
				without = append(without, c.Path)
			}
		}
		if len(refused.Problems) == said && len(conflicts) > 0 { // only all together loosen something
			refused.add(conflicts[0], why)
			for _, c := range conflicts {
				without = append(without, c.Path)
			}
		}
	}
	if len(refused.Problems) == 0 {
		return cfg, nil
	}
	texts.Included = config.Included{Documents: docs, Without: without}.String()
	if held, err := texts.Parse(l.Env, l.Policy); err == nil && l.loosensNothing(texts, held, len(docs)) {
		refused.Held = held
	}
	return nil, refused
}

// loosensNothing reports whether a configuration is at least as strict as each document.
func (l *Loader) loosensNothing(texts config.Texts, cfg *config.Config, docs int) bool {
	for first := 1; first <= docs; first++ {
		if base, err := texts.Keeping(first, nil, l.Env, l.Policy); err != nil || len(looser(base, cfg)) > 0 {
			return false
		}
	}
	return true
}

func (e *LoosensError) add(c config.Conflict, why []string) {
	problem := *c.Above
	problem.Message = "this would loosen what an included document says: " + strings.Join(why, "; ")
	problem.Hint = "the document is at " + c.Below + "; leave this out, or write something stricter"
	if slices.ContainsFunc(why, func(one string) bool { return strings.HasSuffix(one, " is gone") }) {
		problem.Hint = "the document is at " + c.Below + "; a list here takes the place of the document's: repeat its entries and add yours, or leave this out"
	}
	if !slices.ContainsFunc(e.Problems, func(p *config.FieldError) bool { return p.Path == problem.Path }) {
		e.Problems = append(e.Problems, &problem)
	}
}

// looser says how a configuration is looser than the documents that it includes: as an edit is judged,
// and by the limits of scripts, which an edit may change.
func looser(base, cfg *config.Config) []string {
	why := pending.Looser(base, cfg)
	was, is := reflect.ValueOf(base.Sandbox), reflect.ValueOf(cfg.Sandbox)
	for i := range was.NumField() {
		key, _, _ := strings.Cut(was.Type().Field(i).Tag.Get("json"), ",")
		switch field := was.Field(i); {
		case key == "warm":
		case field.CanInt() && is.Field(i).Int() > field.Int() && field.Int() != 0, field.CanInt() && field.Int() != 0 && is.Field(i).Int() == 0:
			why = append(why, fmt.Sprintf("sandbox: %s is %v, and may be %v at most", key, is.Field(i).Interface(), field.Interface()))
		case field.Kind() == reflect.Bool && field.Bool() && !is.Field(i).Bool():
			why = append(why, "sandbox: "+key+" is not true any more")
		}
	}
	for _, limit := range []struct {
		key     string
		was, is int
	}{
		{"perRun", base.Approvals.PerRun, cfg.Approvals.PerRun}, {"perSession", base.Approvals.PerSession, cfg.Approvals.PerSession},
		{"perBridge", base.Approvals.PerBridge, cfg.Approvals.PerBridge},
	} {
		if limit.is > limit.was {
			why = append(why, fmt.Sprintf("approvals: %s is %d, and may be %d at most", limit.key, limit.is, limit.was))
		}
	}
	return why
}
