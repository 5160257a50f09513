package openapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/net/html/charset"
)

// Bounds of a call, in bytes. The body of an answer has [Options.MaxReply].
const (
	maxAddress = 64 << 10 // of a request's URL
	maxError   = 4_000    // of a body that are shown with an error
	maxCopy    = 64 << 10 // of JSON that are repeated as text
)

// call makes the request of one call and returns the answer. If no request can be
// made, or none is answered, the result is an error.
func (a *api) call(ctx context.Context, op *operation, raw json.RawMessage) *mcp.CallToolResult {
	req, err := a.request(ctx, op, raw)
	if err != nil {
		return failure(fmt.Sprintf("%s: %v", op.name, err))
	}
	res, err := a.client.Do(req)
	if err != nil {
		err = withoutAddress(err)
		text := fmt.Sprintf("%s: no answer to %s %s: %v", op.name, op.method, op.path, err)
		var dialled *net.OpError
		if !(errors.As(err, &dialled) && dialled.Op == "dial") {
			text += "; outcome unknown"
		}
		return failure(a.hide.Replace(text))
	}
	defer res.Body.Close()
	content, err := io.ReadAll(io.LimitReader(res.Body, a.limit+1))
	switch {
	case err != nil:
		return failure(a.hide.Replace(fmt.Sprintf("%s: the answer to %s %s broke off: %v; outcome unknown", op.name, op.method, op.path, err)))
	case int64(len(content)) > a.limit:
		return failure(fmt.Sprintf("%s: the answer to %s %s is larger than the limit of %d bytes for one reply", op.name, op.method, op.path, a.limit))
	}
	return a.answer(op, res, content)
}

func failure(text string) *mcp.CallToolResult {
	return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: text}}}
}

// request makes the request of one call.
func (a *api) request(ctx context.Context, op *operation, raw json.RawMessage) (*http.Request, error) {
	args := map[string]json.RawMessage{}
	if len(bytes.TrimSpace(raw)) > 0 {
		if err := json.Unmarshal(raw, &args); err != nil || args == nil {
			return nil, errors.New("the arguments must be an object")
		}
	}
	path := map[string]string{}
	var query []string
	header := http.Header{}
	cookies := []pair{}
	for _, p := range op.parameters {
		v, there, err := take(args, p.arg)
		switch {
		case err != nil:
			return nil, err
		case !there && p.required:
			return nil, fmt.Errorf("%q is required", p.arg)
		case !there:
			continue
		}
		switch p.in {
		case openapi3.ParameterInPath:
			path[p.name], err = p.inPath(v)
		case openapi3.ParameterInHeader:
			var text string
			text, err = p.inHeader(v)
			header.Set(p.name, text)
		case openapi3.ParameterInQuery:
			for _, one := range p.pairs(v) {
				if err = op.checkName(&a.credentials, p, one.name); err != nil {
					break
				}
				query = append(query, one.encoded(p.reserved))
			}
		case openapi3.ParameterInCookie:
			for _, one := range p.pairs(v) {
				if err = op.checkName(&a.credentials, p, one.name); err != nil {
					break
				}
				cookies = append(cookies, one)
			}
		}
		if err != nil {
			return nil, fmt.Errorf("%q %w", p.arg, err)
		}
	}
	var content io.Reader
	if op.body != nil {
		rawBody, there := args[bodyArg]
		delete(args, bodyArg)
		switch {
		case there && !(string(rawBody) == "null" && !op.body.required):
			written, mediaType, err := op.body.write(rawBody)
			if err != nil {
				return nil, fmt.Errorf("%q %w", bodyArg, err)
			}
			content = bytes.NewReader(written)
			header.Set("Content-Type", mediaType)
		case op.body.required:
			return nil, fmt.Errorf("%q is required", bodyArg)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(args)) {
		return nil, fmt.Errorf("there is no argument %q", cut(name, maxName))
	}
	whole := op.fill(func(name string) string { return path[name] })
	if err := op.checkWhole(whole); err != nil {
		return nil, err
	}
	u, err := a.address(whole, strings.Join(query, "&"))
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, op.method, u.String(), content)
	if err != nil {
		return nil, errors.New("the arguments do not make a valid request")
	}
	req.Header = header
	req.Header.Set("Accept", op.accept)
	req.Header.Set("User-Agent", "codemode-bridge")
	for _, one := range cookies {
		addCookie(req, one.name, strings.Join(one.parts, one.by))
	}
	a.credentials.authorize(req, op.security)
	return req, nil
}

// take removes an argument from args and decodes it. null counts as missing.
func take(args map[string]json.RawMessage, name string) (v any, there bool, err error) {
	raw, there := args[name]
	delete(args, name)
	if !there {
		return nil, false, nil
	}
	if v, err = decode(raw); err != nil {
		return nil, false, fmt.Errorf("%q %w", name, err)
	}
	return v, v != nil, nil
}

// checkName refuses a name that an object brings into the query or the cookies and
// that belongs to another parameter or to a credential: a rule about the argument of
// that name has not seen it.
func (op *operation) checkName(c *credentials, p parameter, name string) error {
	if name == p.name {
		return nil
	}
	base, _, _ := strings.Cut(name, "[") // to many servers, name[] and NAME are name
	for _, other := range op.parameters {
		if other.in == p.in && other.name != p.name && (strings.EqualFold(other.name, name) || strings.EqualFold(other.name, base)) {
			return fmt.Errorf("may not hold %q, which is an argument of its own", cut(name, maxName))
		}
	}
	if c.fixed(p.in, name) || c.fixed(p.in, base) {
		return fmt.Errorf("may not hold %q, which the configuration sets", cut(name, maxName))
	}
	return nil
}

// fill puts encoded values into the path.
func (op *operation) fill(value func(name string) string) string {
	var b strings.Builder
	for _, p := range op.template {
		b.WriteString(p.literal)
		if p.parameter != "" {
			b.WriteString(value(p.parameter))
		}
	}
	return b.String()
}

// checkWhole refuses a path in which values that are harmless by themselves together
// make another path for a server that decodes it more than once, such as "%2" and "f".
func (op *operation) checkWhole(path string) error {
	plain := op.fill(func(string) string { return "x" })
	slashes := func(text string) int { return strings.Count(text, "/") + strings.Count(text, `\`) }
	for range 3 {
		path, plain = decodeOnce(path), decodeOnce(plain)
		if err := checkSegments(path); err != nil {
			return err
		}
		if slashes(path) != slashes(plain) {
			return errors.New(`the values would make a "/" or "\" together`)
		}
	}
	return nil
}

// address returns the URL of an encoded path below the base URL.
func (a *api) address(path, query string) (*url.URL, error) {
	if err := checkSegments(path); err != nil {
		return nil, err
	}
	text := a.base.Scheme + "://" + a.base.Host + a.base.EscapedPath() + path
	if query != "" {
		text += "?" + query
	}
	if len(text) > maxAddress {
		return nil, fmt.Errorf("the address would have %d bytes, at most %d are sent", len(text), maxAddress)
	}
	u, err := url.Parse(text)
	if err != nil {
		return nil, errors.New("the arguments do not make a valid address")
	}
	return u, nil
}

// told are the headers of an answer that are passed on: a script may need them, to
// page through a list or to wait.
var told = []string{
	"Content-Disposition", "Content-Range", "Etag", "Last-Modified", "Link", "Location", "Retry-After",
	"X-Next-Page", "X-Page", "X-Per-Page", "X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset", "X-Request-Id", "X-Total", "X-Total-Count", "X-Total-Pages",
}

// answer makes a result of a response and its body.
func (a *api) answer(op *operation, res *http.Response, content []byte) *mcp.CallToolResult {
	headers := map[string]string{}
	for _, name := range told {
		if value := res.Header.Get(name); value != "" {
			headers[strings.ToLower(name)] = a.hide.Replace(cut(value, maxNote))
		}
	}
	meta := mcp.Meta{"http": map[string]any{"status": res.StatusCode, "headers": headers}}
	mediaType, params, err := mime.ParseMediaType(res.Header.Get("Content-Type"))
	if err != nil {
		mediaType = strings.ToLower(strings.TrimSpace(strings.Split(res.Header.Get("Content-Type"), ";")[0]))
	}
	if res.StatusCode < 200 || res.StatusCode > 299 {
		out := failure(a.complaint(op, res, mediaType, content))
		out.Meta = meta
		return out
	}
	result := &mcp.CallToolResult{Meta: meta, Content: []mcp.Content{}}
	text := a.readText(mediaType, params["charset"], content)
	switch {
	case len(content) == 0:
		result.Content = append(result.Content, &mcp.TextContent{Text: fmt.Sprintf("%d %s", res.StatusCode, http.StatusText(res.StatusCode))})
	case isJSONAnswer(mediaType, text):
		result.StructuredContent = json.RawMessage(text)
		copied := text
		if len(text) > maxCopy {
			copied = fmt.Sprintf("%d bytes of JSON, in structuredContent", len(text))
		}
		result.Content = append(result.Content, &mcp.TextContent{Text: copied})
	case strings.HasPrefix(mediaType, "image/") && mediaType != "image/svg+xml":
		result.Content = append(result.Content, &mcp.ImageContent{Data: a.hidden(content), MIMEType: mediaType})
	case strings.HasPrefix(mediaType, "audio/"):
		result.Content = append(result.Content, &mcp.AudioContent{Data: a.hidden(content), MIMEType: mediaType})
	case isText(mediaType, content):
		result.Content = append(result.Content, &mcp.TextContent{Text: text})
	default:
		if mediaType == "" {
			mediaType = "application/octet-stream"
		}
		result.Content = append(result.Content, &mcp.EmbeddedResource{Resource: &mcp.ResourceContents{
			URI: "openapi:///" + op.name, MIMEType: mediaType, Blob: a.hidden(content),
		}})
	}
	return result
}

// hidden removes secrets from a body that is not text: what claims to be a picture
// may be anything.
func (a *api) hidden(content []byte) []byte { return []byte(a.hide.Replace(string(content))) }

// complaint returns the text of an answer that is not a success.
func (a *api) complaint(op *operation, res *http.Response, mediaType string, content []byte) string {
	text := fmt.Sprintf("%s: %s %s was answered with %d %s", op.name, op.method, op.path, res.StatusCode, http.StatusText(res.StatusCode))
	if to := res.Header.Get("Location"); res.StatusCode/100 == 3 && to != "" {
		text += ", a redirect to " + cut(elsewhere(res, to), maxNote) + ", which is not followed"
	}
	if res.StatusCode == http.StatusUnauthorized && len(op.wanting) > 0 {
		text += " (the configuration has no credentials for " + cut(strings.Join(op.wanting, ", "), maxNote) + ")"
	}
	if wait := res.Header.Get("Retry-After"); wait != "" {
		text += " (retry after " + cut(wait, maxName) + ")"
	}
	if len(content) > 0 && isText(mediaType, content) && res.StatusCode/100 != 3 { // a redirect's body only repeats the address
		// Secrets are removed before the text is cut, so that no part of one is left.
		text += "\n" + cut(strings.ToValidUTF8(a.hide.Replace(string(content)), "\uFFFD"), maxError)
	}
	return a.hide.Replace(text)
}

// readText returns a body as text, in UTF-8 and without secrets.
func (a *api) readText(mediaType, encoding string, content []byte) string {
	if encoding != "" && !strings.EqualFold(encoding, "utf-8") && isText(mediaType, content) {
		if r, err := charset.NewReaderLabel(encoding, bytes.NewReader(content)); err == nil {
			if decoded, err := io.ReadAll(r); err == nil {
				content = decoded
			}
		}
	}
	content = bytes.TrimPrefix(content, []byte("\uFEFF"))
	return a.hide.Replace(string(content))
}

// isJSONAnswer reports whether a body is JSON and its type says so. Text that merely
// looks like JSON does not count: the next answer might not.
func isJSONAnswer(mediaType, text string) bool {
	return mediaType != "*/*" && isJSON(mediaType) && utf8.ValidString(text) && json.Valid([]byte(text))
}

func isText(mediaType string, content []byte) bool {
	switch {
	case strings.HasPrefix(mediaType, "text/"), isJSON(mediaType), strings.HasSuffix(mediaType, "xml"), strings.HasSuffix(mediaType, "yaml"),
		mediaType == "application/javascript", mediaType == "application/x-www-form-urlencoded", mediaType == "application/x-ndjson":
		return true
	}
	return mediaType == "" && utf8.Valid(content)
}
