package openapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"codemode-bridge/bridge/atomicfile"

	"github.com/getkin/kin-openapi/openapi3"
)

// Bounds of a document with all that it refers to.
const (
	maxDocument = 32 << 20 // bytes
	maxFiles    = 200
)

var errTooLarge = fmt.Errorf("it is larger than %d MB", maxDocument>>20)

// Stamp identifies the current content of a document in a file, so that a change
// can be noticed. It is empty for a URL, and for a file that is not there.
func Stamp(document string) string {
	if isURL(document) {
		return ""
	}
	info, err := os.Stat(document)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%d bytes of %v", info.Size(), info.ModTime().UnixNano())
}

func isURL(document string) bool {
	return strings.HasPrefix(document, "https://") || strings.HasPrefix(document, "http://")
}

// A source reads a document and what it refers to, within one folder or one
// origin. The library asks for every file through read, and reads nothing itself.
type source struct {
	ctx    context.Context
	root   *os.Root // of a document in a file
	web    *url.URL // of one from the web
	client *http.Client
	header http.Header
	files  int
	left   int64 // bytes that may still come
	survey *survey
}

// folder is put before the names of files, so that a reference out of the
// document's own folder is noticed.
const folder = "/document/"

// load reads the document and resolves what it refers to.
func (a *api) load(ctx context.Context, document string, timeout time.Duration) (doc *openapi3.T, err error) {
	if timeout <= 0 {
		timeout = 30 * time.Second
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	// The library is not ours, and a document may be anything.
	defer func() {
		if p := recover(); p != nil {
			doc, err = nil, fmt.Errorf("it cannot be understood: %v", p)
		}
	}()
	s := &source{ctx: ctx, client: a.client, left: maxDocument, survey: newSurvey()}
	var at *url.URL
	if isURL(document) {
		if at, err = url.Parse(document); err != nil {
			return nil, errors.New("its address is not a URL")
		}
		at.Fragment = ""
		s.web = at
		if origin(at) == origin(a.base) {
			s.header = a.credentials.headers
		}
	} else {
		real, err := filepath.EvalSymlinks(document)
		if err != nil {
			return nil, err
		}
		if s.root, err = os.OpenRoot(filepath.Dir(real)); err != nil {
			return nil, err
		}
		defer s.root.Close()
		at = &url.URL{Path: folder + filepath.Base(real)}
	}
	data, err := s.read(nil, at)
	if err != nil {
		return nil, err
	}
	loader := openapi3.NewLoader()
	loader.Context = ctx
	loader.ReadFromURIFunc = s.read
	if doc, err = loader.LoadFromDataWithPath(data, at); err != nil {
		return nil, err
	}
	if !strings.HasPrefix(doc.OpenAPI, "3.") {
		return nil, fmt.Errorf("it is no OpenAPI 3 document: its \"openapi\" is %q", cut(doc.OpenAPI, 20))
	}
	return doc, nil
}

// read is the library's only way to a file or a page.
func (s *source) read(_ *openapi3.Loader, at *url.URL) ([]byte, error) {
	if s.files++; s.files > maxFiles {
		return nil, fmt.Errorf("it refers to more than %d files", maxFiles)
	}
	var data []byte
	var err error
	if s.root != nil {
		data, err = s.readFile(at)
	} else {
		data, err = s.readPage(at)
	}
	if err != nil {
		return nil, err
	}
	if s.left -= int64(len(data)); s.left < 0 {
		return nil, errTooLarge
	}
	return data, s.survey.add(at, data)
}

func (s *source) readFile(at *url.URL) ([]byte, error) {
	name, inside := strings.CutPrefix(at.Path, folder)
	if at.Scheme != "" || at.Host != "" || !inside {
		return nil, fmt.Errorf("it refers to %s: a document in a file may refer to files in its own folder and below it only", cut(strings.TrimPrefix(at.Redacted(), folder), 200))
	}
	data, err := atomicfile.ReadIn(s.root, filepath.FromSlash(name), s.left)
	if errors.Is(err, atomicfile.ErrTooLong) {
		return nil, errTooLarge
	}
	return data, err
}

func (s *source) readPage(at *url.URL) ([]byte, error) {
	if origin(at) != origin(s.web) {
		return nil, fmt.Errorf("it refers to %s: a document from the web may refer to its own origin only", cut(withoutQuery(at), 200))
	}
	req, err := http.NewRequestWithContext(s.ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return nil, errors.New("its address is not a URL")
	}
	for name, values := range s.header {
		req.Header[name] = values
	}
	req.Header.Set("Accept", "application/json, application/yaml, */*;q=0.5")
	res, err := s.client.Do(req)
	if err != nil {
		return nil, withoutAddress(err)
	}
	defer res.Body.Close()
	if to := res.Header.Get("Location"); res.StatusCode/100 == 3 && to != "" {
		return nil, fmt.Errorf("%s redirects to another origin, %s", withoutQuery(at), cut(elsewhere(res, to), 200))
	}
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answers %s", withoutQuery(at), res.Status)
	}
	data, err := io.ReadAll(io.LimitReader(res.Body, s.left+1))
	if err != nil {
		return nil, withoutAddress(err)
	}
	return data, nil
}

// elsewhere returns where a redirect leads, without the query, which may be secret.
func elsewhere(res *http.Response, to string) string {
	u, err := res.Request.URL.Parse(to)
	if err != nil {
		return "an invalid address"
	}
	return withoutQuery(u)
}

func withoutQuery(u *url.URL) string {
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

// withoutAddress takes the address, whose query may be secret, out of an error of
// package http.
func withoutAddress(err error) error {
	var web *url.Error
	if errors.As(err, &web) {
		return web.Err
	}
	return err
}
