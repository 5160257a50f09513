// Package pagecmd has the command that opens the approval page in a browser.
package pagecmd

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/login"
	"codemode-bridge/cmd/codemode-bridge/cli"

	"github.com/spf13/cobra"
)

// openFor is how long a browser may take to read the file that redirects it to
// the page.
const openFor = 20 * time.Second

// A Bridge is what the command needs of the program.
type Bridge struct {
	*cli.Console

	Load func(ctx context.Context) (*config.Config, error) // the configuration in force
	// Token asks for an approver's token, and checks it.
	Token func(cfg *config.Config, fromStdin bool) (string, error)
	// Elsewhere returns the page of a bridge that runs; empty if there is none.
	Elsewhere func(cfg *config.Config) string
}

// Open signs an approver in on the page with a one-time code, so that
// their token never enters a browser. The code is in no text that a model reads
// and not among the arguments of any process.
func (b *Bridge) Open() *cobra.Command {
	var at string
	var fromStdin, show bool
	c := &cobra.Command{
		Use: "open", Short: "Open the approval page in your browser, signed in", Args: cli.NoArgs,
		Long: "Opens the approval page in your browser, signed in as you. Your approver's token is asked for on the\nterminal and not shown; it goes to the page's bridge, and the browser gets a code that is good once.",
		RunE: func(c *cobra.Command, _ []string) error {
			cfg, err := b.Load(c.Context())
			if err != nil {
				return err
			}
			base, err := b.pageOf(cfg, at)
			if err != nil {
				return err
			}
			token, err := b.Token(cfg, fromStdin)
			if err != nil {
				return err
			}
			code, err := signInCode(c.Context(), base, token)
			if err != nil {
				return err
			}
			link := base + "/login#code=" + code
			if show {
				fmt.Fprintln(b.Out, link)
				return nil
			}
			return b.openPrivately(c.Context(), base, link)
		},
	}
	c.Flags().StringVar(&at, "at", "", "the page's `address`, if approvals.listen does not name it")
	c.Flags().BoolVar(&fromStdin, "token-stdin", false, "read your token from standard input")
	c.Flags().BoolVar(&show, "print", false, "print the link instead, which lets in whoever follows it first")
	return c
}

// pageOf returns the address of the page: at if it is given, else the
// configuration's. It refuses one to which a token would travel in the clear.
func (b *Bridge) pageOf(cfg *config.Config, at string) (string, error) {
	if at != "" {
		u, err := url.Parse(at)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.Fragment != "" {
			return "", &cli.UsageError{Err: fmt.Errorf("--at takes the address of a page, such as http://127.0.0.1:7421, not %q", at)}
		}
		if ip := net.ParseIP(u.Hostname()); u.Scheme == "http" && u.Hostname() != "localhost" && (ip == nil || !ip.IsLoopback()) {
			return "", &cli.UsageError{Err: fmt.Errorf("--at takes plain http on this machine only, and your token would go to %s in the clear: https, or a tunnel that ends here", canon.Escape(u.Host))}
		}
		return u.Scheme + "://" + u.Host, nil
	}
	listen := cfg.Approvals.Listen.Reveal()
	if cfg.Audit.Enabled && listen != config.ListenOff {
		if at := b.Elsewhere(cfg); at != "" {
			return at, nil
		}
	}
	if listen == config.ListenOff {
		return "", &cli.SetupError{Err: errors.New("there is no page: approvals.listen is off"), Do: "codemode-bridge approvals watch answers in the terminal"}
	}
	host, port, err := net.SplitHostPort(listen)
	if err != nil || port == "0" {
		return "", &cli.SetupError{Err: fmt.Errorf("approvals.listen is %s, which does not say where the page is", canon.Escape(listen)), Do: "--at names the address that codemode-bridge serve printed"}
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	if cfg.Approvals.TLS != (config.TLS{}) {
		// The address is not what a certificate is for.
		return "", &cli.SetupError{Err: errors.New("the page has a certificate, and the configuration does not say for which name"), Do: "--at names the address that codemode-bridge serve printed"}
	}
	return "http://" + net.JoinHostPort(host, port), nil
}

// signInCode asks the page for a one-time code for the holder of token.
func signInCode(ctx context.Context, base, token string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, base+"/api/login/code", bytes.NewReader([]byte("{}")))
	if err != nil {
		return "", fmt.Errorf("asking the page for a code: %w", err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+token)
	// The token goes to base and nowhere else: no proxy, no redirect.
	client := &http.Client{Transport: &http.Transport{}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	defer client.CloseIdleConnections()
	res, err := client.Do(r)
	if err != nil {
		return "", &cli.SetupError{Err: fmt.Errorf("asking the page for a code: %w", err), Do: "codemode-bridge serve has the page, as long as it runs"}
	}
	defer res.Body.Close()
	var answer struct{ Code string }
	if res.StatusCode == http.StatusUnauthorized {
		return "", &cli.SetupError{Err: fmt.Errorf("the page at %s does not know that token", base), Do: "the bridge there may have another configuration"}
	}
	err = json.NewDecoder(http.MaxBytesReader(nil, res.Body, 4096)).Decode(&answer)
	if err != nil || res.StatusCode != http.StatusOK || url.QueryEscape(answer.Code) != answer.Code || answer.Code == "" {
		return "", fmt.Errorf("asking the page for a code: %s answered %s", base, res.Status)
	}
	return answer.Code, nil
}

// openPrivately opens a link in the browser through a file that only this user can
// read: every user can read the arguments of a process.
func (b *Bridge) openPrivately(ctx context.Context, base, link string) (err error) {
	dir, err := os.MkdirTemp("", "codemode-bridge-") // of mode 0700
	if err != nil {
		return fmt.Errorf("leading the browser to the page: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	file := filepath.Join(dir, "open.html")
	to := html.EscapeString(link)
	text := `<!doctype html><meta charset="utf-8"><meta name="referrer" content="no-referrer"><meta http-equiv="refresh" content="0; url=` + to + `"><title>codemode-bridge</title><a href="` + to + `">To the approval page</a>`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return fmt.Errorf("leading the browser to the page: %w", err)
	}
	if err := login.OpenFile(file); err != nil {
		return &cli.SetupError{Err: err, Do: "--print prints the link instead"}
	}
	fmt.Fprintf(b.Err, "opening %s in your browser; if nothing comes up there, sign in with your token, or use --print\n", base)
	select {
	case <-ctx.Done():
	case <-time.After(openFor):
	}
	return nil
}
