package enrolment

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"codemode-bridge/bridge/enrolment/wire"
)

// A Client talks to a centre. Its methods may be called concurrently.
type Client struct {
	address string
	centre  ed25519.PublicKey
	name    string // the laptop's
	key     ed25519.PrivateKey
	http    *http.Client

	mu   sync.Mutex
	skew time.Duration // of the centre's clock, once it has said that ours is off
	last int64         // the greatest stamp that was used
}

// requestTime bounds a request, and maxAnswer what comes back: verdicts may have arguments.
const (
	requestTime = 40 * time.Second
	maxAnswer   = 2 << 20
)

// transport never follows a redirection: the answer would not be the centre's.
func transport(rt http.RoundTripper) *http.Client {
	return &http.Client{Transport: rt, Timeout: requestTime, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// NewClient returns a client for an enrolled laptop. A nil transport is the usual one.
func NewClient(e Enrolment, key ed25519.PrivateKey, rt http.RoundTripper) *Client {
	return &Client{address: e.Centre, centre: e.CentreKey, name: e.Laptop, key: key, http: transport(rt)}
}

// Address checks the address of a centre: https, or http on this machine, without anything
// that a request does not take.
func Address(text string) (string, error) {
	u, err := url.Parse(strings.TrimSuffix(text, "/"))
	switch {
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		return "", fmt.Errorf("%.200q is no address of a centre: it is https://HOST", text)
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return "", errors.New("the address of a centre has no user, query or fragment")
	case u.Scheme == "http" && !loopback(u.Hostname()):
		return "", fmt.Errorf("%s is not encrypted: a centre is reached with https", u)
	}
	return u.String(), nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// Enrol makes a key known to a centre, and returns what the laptop keeps. Calling it again
// with the same code and key returns the same.
func Enrol(ctx context.Context, address, code string, key ed25519.PrivateKey, from wire.Head, version string, rt http.RoundTripper) (Enrolment, error) {
	address, err := Address(address)
	if err != nil {
		return Enrolment{}, err
	}
	secret, fingerprint, err := wire.ParseCode(code)
	if err != nil {
		return Enrolment{}, err
	}
	c := &Client{address: address, http: transport(rt)}
	var is wire.Centre
	status, h, body, asked, err := c.send(ctx, http.MethodGet, wire.PathCentre, nil, rand.Text())
	if err != nil {
		return Enrolment{}, err
	}
	if status != http.StatusOK || json.Unmarshal(body, &is) != nil {
		return Enrolment{}, fmt.Errorf("%s is no centre: it answers %d", address, status)
	}
	if wire.Fingerprint(is.Key) != fingerprint || !wire.AnswerSigned(h, is.Key, asked, http.MethodGet, wire.PathCentre, status, body) {
		return Enrolment{}, fmt.Errorf("the centre at %s does not have the key that the code names: the code is for another centre, or somebody is in between", address)
	}
	c.centre = is.Key
	e := wire.Enrolling{Code: wire.CodeID(secret), Key: key.Public().(ed25519.PublicKey), From: from, Version: version}
	e.MAC = wire.CodeMAC(wire.CodeKey(secret), &e)
	var done wire.Enrolled
	if err := c.exchange(ctx, wire.PathEnrol, rand.Text(), e, &done); err != nil {
		return Enrolment{}, err
	}
	if done.Laptop == "" {
		return Enrolment{}, errors.New("the centre gave this machine no name")
	}
	return Enrolment{Centre: address, CentreKey: is.Key, Laptop: done.Laptop, Person: done.Person, Enrolled: time.Now().UTC(), From: from, PolicyKey: done.PolicyKey}, nil
}

// Send sends a batch, and returns what the centre has now.
func (c *Client) Send(ctx context.Context, b wire.Batch) (wire.Head, error) {
	var done wire.Received
	err := c.signed(ctx, wire.PathRows, b, &done)
	return done.Head, err
}

// Leave tells the centre that the laptop has left.
func (c *Client) Leave(ctx context.Context) error {
	return c.signed(ctx, wire.PathLeave, struct{}{}, new(struct{}))
}

// Ask says what waits for approvers at the centre, in the form of package questions, and
// reads what the centre answers.
func (c *Client) Ask(ctx context.Context, in, out any) error {
	return c.signed(ctx, wire.PathQuestions, in, out)
}

// Skew is how far the centre's clock is ahead, if it has said that ours is off.
func (c *Client) Skew() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.skew
}

// signed makes a request of this laptop. It adapts to the centre's clock, and to a stamp
// that another process of this laptop has used meanwhile.
func (c *Client) signed(ctx context.Context, path string, in, out any) error {
	for attempt := 0; ; attempt++ {
		err := c.exchange(ctx, path, c.stamp(), in, out)
		var r *wire.Refusal
		if attempt == 3 || !errors.As(err, &r) {
			return err
		}
		c.mu.Lock()
		switch {
		case r.Code == wire.OffClock && !r.Time.IsZero():
			c.skew, c.last = time.Until(r.Time), 0
		case r.Code == wire.Replayed && r.Last > 0:
			c.last = max(c.last, r.Last)
		default:
			c.mu.Unlock()
			return err
		}
		c.mu.Unlock()
	}
}

func (c *Client) stamp() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = max(c.last+1, time.Now().Add(c.skew).UnixMicro())
	return strconv.FormatInt(c.last, 10)
}

// exchange makes a request with a stamp and reads the centre's signed answer.
func (c *Client) exchange(ctx context.Context, path, stamp string, in, out any) error {
	text, err := json.Marshal(in)
	if err != nil {
		return fmt.Errorf("asking the centre: %w", err)
	}
	status, h, body, asked, err := c.send(ctx, http.MethodPost, path, text, stamp)
	if err != nil {
		return err
	}
	if !wire.AnswerSigned(h, c.centre, asked, http.MethodPost, path, status, body) {
		return fmt.Errorf("asking the centre at %s: the answer (status %d) is not signed with the centre's key", c.address, status)
	}
	if status != http.StatusOK {
		r := new(wire.Refusal)
		if json.Unmarshal(body, r) != nil || r.Code == "" {
			return fmt.Errorf("asking the centre at %s: it answers %d", c.address, status)
		}
		return r
	}
	if err := json.Unmarshal(body, out); err != nil {
		return fmt.Errorf("reading the centre's answer: %w", err)
	}
	return nil
}

// send makes a request, and returns the answer with the headers of the request.
func (c *Client) send(ctx context.Context, method, path string, text []byte, stamp string) (status int, h http.Header, body []byte, asked http.Header, err error) {
	r, err := http.NewRequestWithContext(ctx, method, c.address+path, bytes.NewReader(text))
	if err != nil {
		return 0, nil, nil, nil, fmt.Errorf("asking the centre: %w", err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set(wire.HeaderStamp, stamp)
	if c.key != nil {
		wire.SignRequest(r.Header, c.key, c.centre, method, path, c.name, stamp, text)
	}
	resp, err := c.http.Do(r)
	if err != nil {
		return 0, nil, nil, nil, fmt.Errorf("the centre cannot be reached: %w", err)
	}
	defer resp.Body.Close()
	body, err = io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return 0, nil, nil, nil, fmt.Errorf("the centre cannot be reached: %w", err)
	}
	return resp.StatusCode, resp.Header, body, r.Header, nil
}
