package openapi

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

const maxRedirects = 5

// An api is where requests go, and what is sent with all of them.
type api struct {
	base        *url.URL // without user, query and fragment; its path does not end in a slash
	credentials credentials
	client      *http.Client
	limit       int64             // bytes of an answer's body
	hide        *strings.Replacer // takes credentials out of answers
}

func newAPI(baseURL string, headers map[string]string, limit int64) (*api, error) {
	u, err := url.Parse(baseURL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("the base URL is not an http or https URL with a host")
	}
	a := &api{credentials: credentials{user: u.User, query: u.Query(), headers: http.Header{}}, limit: cmp.Or(limit, 16<<20)}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	u.Path, u.RawPath = strings.TrimRight(u.Path, "/"), strings.TrimRight(u.RawPath, "/")
	a.base = u
	for name, value := range headers {
		a.credentials.headers.Set(name, value)
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxResponseHeaderBytes = 256 << 10
	transport.MaxIdleConnsPerHost = 16
	a.client = &http.Client{Transport: transport, CheckRedirect: a.redirect}
	return a, nil
}

// redirect follows redirects within the origin. One that leads elsewhere is returned
// as the answer: the credentials are for this origin only.
func (a *api) redirect(req *http.Request, via []*http.Request) error {
	if origin(req.URL) != origin(via[0].URL) || len(via) > maxRedirects {
		return http.ErrUseLastResponse
	}
	return nil
}

// origin is the scheme, host and port of a URL.
func origin(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return u.Scheme + "://" + strings.ToLower(u.Hostname()) + ":" + port
}
