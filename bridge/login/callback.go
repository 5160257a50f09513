package login

import (
	"context"
	"errors"
	"fmt"
	"html/template"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"time"

	"codemode-bridge/bridge/webguard"
)

// A Callback is where the browser comes back to: a port of this machine that no
// other can reach.
type Callback struct {
	listener net.Listener
	port     int
}

const callbackPath = "/callback"

// Listen opens the first of the ports that is free, and any if none of them is;
// with fixed, only the first. Port 0 is any.
func Listen(fixed bool, ports ...int) (*Callback, error) {
	if !fixed {
		ports = append(ports, 0)
	}
	var failure error
	for _, port := range ports {
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			failure = err
			continue
		}
		return &Callback{listener: l, port: l.Addr().(*net.TCPAddr).Port}, nil
	}
	return nil, fmt.Errorf("opening a port for the browser to come back to: %w", failure)
}

// URL is the address to come back to.
func (cb *Callback) URL() string {
	return "http://127.0.0.1:" + strconv.Itoa(cb.port) + callbackPath
}

var callbackPage = template.Must(template.New("").Parse(`<!doctype html><html lang="en"><meta charset="utf-8"><title>codemode-bridge</title>
<body style="font: 1.1rem/1.5 system-ui, sans-serif; margin: 15vh auto; max-width: 32rem; padding: 0 1rem; color-scheme: light dark">
<h1 style="font-size: 1.4rem">{{.Head}}</h1><p>{{.Text}}</p>
`))

// Wait waits for the browser to come back and finishes the attempt. It closes the
// port before it returns. Requests that are not of the attempt change nothing.
func (cb *Callback) Wait(ctx context.Context, a *Attempt) (Info, error) {
	type outcome struct {
		info Info
		err  error
	}
	done := make(chan outcome, 1)
	show := func(w http.ResponseWriter, status int, head, text string) {
		h := w.Header()
		h.Set("Content-Type", "text/html; charset=utf-8")
		h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'")
		h.Set("Referrer-Policy", "no-referrer") // the address has the code in it
		h.Set("Cache-Control", "no-store")
		h.Set("Connection", "close")
		w.WriteHeader(status)
		_ = callbackPage.Execute(w, struct{ Head, Text string }{head, text}) // the browser may be gone
	}
	here := cb.listener.Addr().String()
	server := &http.Server{
		ReadTimeout: 10 * time.Second, WriteTimeout: patience + 10*time.Second, MaxHeaderBytes: maxHeader,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodGet || r.URL.Path != callbackPath || r.Host != here {
				http.NotFound(w, r)
				return
			}
			info, err := a.Finish(ctx, "?"+r.URL.RawQuery)
			switch {
			case errors.Is(err, ErrOther):
				show(w, http.StatusBadRequest, "Not the login that waits here", "Open the link that codemode-bridge printed last.")
				return
			case err != nil:
				show(w, http.StatusBadGateway, "The login failed", err.Error())
			default:
				show(w, http.StatusOK, "Logged in to "+a.client.server.Name, "You can close this window.")
			}
			select {
			case done <- outcome{info, err}:
			default: // a second answer, after the first
			}
		}),
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(webguard.Strict(cb.listener)) // ends with Shutdown or Close
	}()
	var o outcome
	select {
	case o = <-done:
	case <-ctx.Done():
		o.err = fmt.Errorf("waiting for the browser: %w", context.Cause(ctx))
	}
	// The page that says how it went may still be on its way.
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	if server.Shutdown(ending) != nil {
		_ = server.Close()
	}
	<-served
	return o.info, o.err
}

// Close closes the port of a Callback that nobody waits for.
func (cb *Callback) Close() { _ = cb.listener.Close() }

// OpenBrowser opens a link in the person's browser. No shell is involved, and a
// link that is not plainly a web address is refused.
func OpenBrowser(link string) error {
	if _, err := checkURL(link); err != nil {
		return fmt.Errorf("opening the browser: %w", err)
	}
	return open(link)
}

// open hands something to the person's browser.
func open(what string) error {
	name, args := opener(runtime.GOOS)
	cmd := exec.Command(name, append(args, what)...)
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("opening the browser: %w", err)
	}
	go func() { _ = cmd.Wait() }() // it may stay as long as the browser does
	return nil
}

// OpenFile opens a file, by its absolute path, in the person's browser. Unlike a
// link, what it holds is in no process's arguments.
func OpenFile(path string) error {
	if !filepath.IsAbs(path) {
		return fmt.Errorf("opening the browser: %s is no absolute path", path)
	}
	return open(path)
}

func opener(system string) (name string, args []string) {
	switch system {
	case "darwin":
		return "open", nil
	case "windows":
		return "rundll32", []string{"url.dll,FileProtocolHandler"}
	}
	return "xdg-open", nil
}
