package identity

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
)

const (
	// answerTime bounds a request to the issuer, maxAnswer its answer.
	answerTime = 5 * time.Second
	maxAnswer  = 1 << 20
	maxKeys    = 100
	// renewAfter is how old keys may be before they are asked for again, keepFor how
	// long they count if the issuer does not answer.
	renewAfter = 15 * time.Minute
	keepFor    = 24 * time.Hour
	// The issuer is asked again at the earliest this long after it has answered, or
	// not answered, or not answered while older keys still count.
	quiet, quietFailed, quietStale = 10 * time.Second, 3 * time.Second, 30 * time.Second
)

// An issuer reads an authorization server's metadata and keys, and keeps both. A token
// that no known key has signed makes it read them again, since keys are rotated; not
// more often than quiet allows, since anybody can send such a token.
type issuer struct {
	o      Options
	client *http.Client

	mu     sync.Mutex
	known  *known        // nil before the first success
	failed error         // why the last attempt failed; nil if it did not
	again  time.Time     // no new attempt before that time
	flight chan struct{} // closed when the attempt under way ends; nil if there is none
}

// known is what the issuer said at one time.
type known struct {
	metadata
	keys []jose.JSONWebKey
	at   time.Time
}

// metadata are the members of an issuer's metadata that matter here.
type metadata struct {
	Issuer        string   `json:"issuer"`
	Keys          string   `json:"jwks_uri"`
	Introspection string   `json:"introspection_endpoint"`
	Registration  string   `json:"registration_endpoint"`
	Documents     bool     `json:"client_id_metadata_document_supported"`
	Challenges    []string `json:"code_challenge_methods_supported"`
}

func newIssuer(o Options) *issuer {
	return &issuer{o: o, client: &http.Client{Timeout: answerTime, Transport: bounded{o.Transport}, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse // a request may hold a token and the client secret
	}}}
}

var errNoKey = errors.New("no key of the issuer has made the signature")

// VerifySignature returns the payload of a JWT that the issuer signed. It implements
// oidc.KeySet.
func (i *issuer) VerifySignature(ctx context.Context, token string) ([]byte, error) {
	accepted := make([]jose.SignatureAlgorithm, len(algorithms))
	for n, name := range algorithms {
		accepted[n] = jose.SignatureAlgorithm(name)
	}
	jws, err := jose.ParseSignedCompact(token, accepted)
	if err != nil {
		return nil, err
	}
	if typ, ok := jws.Signatures[0].Header.ExtraHeaders[jose.HeaderType]; ok {
		text, _ := typ.(string)
		if text = strings.TrimPrefix(strings.ToLower(text), "application/"); text != "jwt" && text != "at+jwt" {
			return nil, errors.New("it is another kind of JWT")
		}
	}
	k, err := i.current(ctx)
	if err != nil {
		return nil, err
	}
	if payload, ok := k.verify(jws); ok {
		return payload, nil
	}
	if k = i.newer(ctx, k); k != nil {
		if payload, ok := k.verify(jws); ok {
			return payload, nil
		}
	}
	return nil, errNoKey
}

// verify returns the payload if one of the keys has made the signature.
func (k *known) verify(jws *jose.JSONWebSignature) ([]byte, bool) {
	header := jws.Signatures[0].Header
	for _, key := range k.keys {
		if header.KeyID != "" && key.KeyID != header.KeyID || key.Algorithm != "" && key.Algorithm != header.Algorithm {
			continue
		}
		if payload, err := jws.Verify(key); err == nil {
			return payload, true
		}
	}
	return nil, false
}

// current returns what is known of the issuer, and asks if that is nothing, or old.
func (i *issuer) current(ctx context.Context) (*known, error) {
	i.mu.Lock()
	k := i.known
	i.mu.Unlock()
	now := i.o.Now()
	if k != nil && now.Sub(k.at) < renewAfter {
		return k, nil
	}
	fresh, err := i.read(ctx)
	if err != nil && k != nil && now.Sub(k.at) < keepFor {
		return k, nil
	}
	return fresh, err
}

// newer returns what the issuer says now, if that is other than old; nil if it may not
// be asked again yet, or does not answer.
func (i *issuer) newer(ctx context.Context, old *known) *known {
	i.mu.Lock()
	k := i.known
	i.mu.Unlock()
	if k != old {
		return k
	}
	k, err := i.read(ctx)
	if err != nil || k == old {
		return nil
	}
	return k
}

// read asks the issuer, unless somebody does already, whose answer then counts, or it
// is too early, where the last answer counts.
func (i *issuer) read(ctx context.Context) (*known, error) {
	i.mu.Lock()
	for i.flight != nil {
		flight := i.flight
		i.mu.Unlock()
		select {
		case <-flight:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		i.mu.Lock()
	}
	defer i.mu.Unlock()
	if i.o.Now().Before(i.again) {
		return i.known, i.failed
	}
	flight := make(chan struct{})
	i.flight = flight
	i.mu.Unlock()
	k, err := i.fetch(context.WithoutCancel(ctx)) // others wait for it
	i.mu.Lock()
	i.flight = nil
	close(flight)
	switch now := i.o.Now(); {
	case err == nil:
		if i.failed != nil {
			i.o.Logger.Info("the issuer of tokens answers again", "issuer", i.o.Issuer)
		}
		i.known, i.failed, i.again = k, nil, now.Add(quiet)
	default:
		if i.failed == nil {
			i.o.Logger.Warn("the issuer of tokens cannot be asked; tokens that cannot be checked are refused", "issuer", i.o.Issuer, "err", err)
		}
		i.failed, i.again = err, now.Add(quietFailed)
		if i.known != nil {
			i.again = now.Add(quietStale)
		}
	}
	return i.known, i.failed
}

// unreachable returns why no token can be checked; nil if the issuer's keys are known.
func (i *issuer) unreachable() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.known != nil && i.o.Now().Sub(i.known.at) < keepFor {
		return nil
	}
	if i.failed == nil {
		return nil
	}
	return unchecked("the token cannot be checked: the issuer of tokens, " + i.o.Issuer + ", cannot be asked; try again later")
}

// fetch reads the metadata and the keys.
func (i *issuer) fetch(ctx context.Context) (*known, error) {
	k := &known{at: i.o.Now()}
	addresses, err := metadataAt(i.o.Issuer)
	if err != nil {
		return nil, err
	}
	var tried failures
	for _, address := range addresses {
		k.metadata = metadata{}
		err := i.get(ctx, address, &k.metadata)
		if err == nil && k.Issuer != i.o.Issuer {
			err = fmt.Errorf("the metadata at %s are of the issuer %q", address, k.Issuer)
		}
		if err == nil {
			tried = nil
			break
		}
		tried = append(tried, err)
	}
	if tried != nil {
		return nil, fmt.Errorf("reading the issuer's metadata: %w", tried)
	}
	if k.Keys == "" && i.o.ClientID != "" {
		return k, nil // its tokens are all opaque
	}
	if !SafeAddress(k.Keys) {
		return nil, fmt.Errorf("the issuer's metadata name the keys' address %q, which is not https", k.Keys)
	}
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := i.get(ctx, k.Keys, &set); err != nil {
		return nil, fmt.Errorf("reading the issuer's keys: %w", err)
	}
	for _, text := range set.Keys[:min(len(set.Keys), maxKeys)] {
		var key jose.JSONWebKey
		if json.Unmarshal(text, &key) == nil && signs(key) {
			k.keys = append(k.keys, key)
		}
	}
	if len(k.keys) == 0 {
		return nil, fmt.Errorf("the issuer has no public keys for signatures at %s", k.Keys)
	}
	return k, nil
}

// metadataAt returns where an issuer's metadata may be: as OpenID Connect Discovery
// has it, and RFC 8414.
func metadataAt(issuer string) ([]string, error) {
	u, err := url.Parse(issuer)
	if err != nil || u.Host == "" {
		return nil, fmt.Errorf("the issuer %q is not an address", issuer)
	}
	path := strings.TrimSuffix(u.EscapedPath(), "/")
	base := u.Scheme + "://" + u.Host
	return []string{base + path + "/.well-known/openid-configuration", base + "/.well-known/oauth-authorization-server" + path}, nil
}

// signs reports whether a key is public, strong enough and meant for signatures. A
// secret that the issuer publishes by mistake is none.
func signs(key jose.JSONWebKey) bool {
	if !key.Valid() || key.Use != "" && key.Use != "sig" {
		return false
	}
	switch public := key.Key.(type) {
	case *rsa.PublicKey:
		return public.N.BitLen() >= 2048
	case *ecdsa.PublicKey, ed25519.PublicKey:
		return true
	}
	return false
}

func (i *issuer) get(ctx context.Context, address string, into any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Accept", "application/json")
	res, err := i.client.Do(req)
	if err != nil {
		var failed *url.Error // which names the address, too
		if errors.As(err, &failed) {
			err = failed.Err
		}
		return &silent{err, address}
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", address, res.Status)
	}
	if err := json.NewDecoder(res.Body).Decode(into); err != nil {
		return fmt.Errorf("%s does not answer with the JSON that is expected", address)
	}
	return nil
}

// A silent is why an address of the issuer did not answer.
type silent struct {
	err error
	at  string
}

func (s *silent) Error() string { return fmt.Sprintf("%v (asked: %s)", s.err, s.at) }
func (s *silent) Unwrap() error { return s.err }

// failures are why none of several addresses would do.
type failures []error

func (f failures) Error() string {
	var all []string
	for _, err := range f {
		all = append(all, err.Error())
	}
	return strings.Join(all, "; ")
}

func (f failures) Unwrap() []error { return f }

// SafeAddress reports whether nobody on the way can read or change what is sent to an
// address: it is https, or on this machine.
func SafeAddress(address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Scheme == "https" || u.Scheme == "http" && (u.Hostname() == "localhost" || ip != nil && ip.IsLoopback())
}

// Bounded returns a transport that cuts long answers.
func Bounded(next http.RoundTripper) http.RoundTripper { return bounded{next} }

type bounded struct{ next http.RoundTripper }

func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := b.next.RoundTrip(r)
	if err == nil {
		res.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(res.Body, maxAnswer), res.Body}
	}
	return res, err
}
