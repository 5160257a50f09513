package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"

	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/openapi"
	"codemode-bridge/bridge/upstream"
	"codemode-bridge/cmd/codemode-bridge/cli"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"
)

// An OpenAPI document is untrusted, so a process of its own reads it: this program
// with the command openapi, an MCP server over stdin and stdout. Its options, secrets
// among them, are in an environment variable, because every user can read the
// arguments of a process.

// openapiVariable holds the openapi.Options of the process, as JSON.
const openapiVariable = "CODEMODE_BRIDGE_OPENAPI"

// maxReason bounds the bytes of the error with which the process ends.
const maxReason = 4_000

// connectionVariables say how this machine reaches the web: proxies and certificates.
var connectionVariables = []string{
	"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy", "SSL_CERT_FILE", "SSL_CERT_DIR",
}

// fromDocument turns spec into one that starts the process for an OpenAPI document.
func fromDocument(spec *upstream.Spec, s *config.Server) {
	o := openapi.Options{
		Document: s.OpenAPI.Reveal(), BaseURL: spec.URL, Headers: spec.Headers, Credentials: config.RevealMap(s.Credentials),
		MaxReply: spec.Limits.MaxReply, LoadTimeout: spec.Limits.ConnectTimeout,
	}
	options, err := json.Marshal(o)
	if err != nil {
		panic("codemode-bridge: writing the options of an OpenAPI server: " + err.Error()) // cannot happen: all fields are strings and numbers
	}
	self, err := os.Executable()
	if err != nil {
		self = os.Args[0]
	}
	spec.Kind, spec.Own, spec.Protocol = upstream.Stdio, true, upstream.Modern
	spec.Command, spec.Args = self, []string{"openapi"}
	spec.Env, spec.PassEnv = map[string]string{openapiVariable: string(options)}, connectionVariables
	spec.Source = fmt.Sprintf("%s, %s", o.Document, openapi.Stamp(o.Document))
	for _, scheme := range slices.Sorted(maps.Keys(o.Credentials)) {
		spec.Secrets = append(spec.Secrets, o.Credentials[scheme])
	}
}

// openapiCommand is the process that serves the operations of one document. It is
// started by the bridge, never by hand.
func openapiCommand(con *console) *cobra.Command {
	return &cobra.Command{
		Use: "openapi", Short: "Serve the operations of an OpenAPI document over stdin and stdout", Hidden: true, Args: cli.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			options, ok := con.Env(openapiVariable)
			if !ok {
				return &cli.UsageError{Err: errors.New(`openapi is started by the bridge, for a server of "type": "openapi"`)}
			}
			log := slog.New(slog.NewJSONHandler(con.Err, &slog.HandlerOptions{Level: slog.LevelDebug}))
			if err := serveDocument(c, con, options, log); err != nil {
				text := err.Error()
				log.Error("serving the document", "err", strings.ToValidUTF8(text[:min(len(text), maxReason)], ""))
				return &cli.ExitError{Code: cli.ExitFailed}
			}
			return nil
		},
	}
}

func serveDocument(c *cobra.Command, con *console, options string, log *slog.Logger) error {
	var o openapi.Options
	if err := json.Unmarshal([]byte(options), &o); err != nil {
		return fmt.Errorf("reading %s: %w", openapiVariable, err)
	}
	o.Logger = log
	server, err := openapi.New(c.Context(), o)
	if err != nil {
		return err
	}
	// It ends when the bridge closes the pipe or is gone: neither is an error.
	_ = server.Run(c.Context(), &mcp.IOTransport{Reader: os.Stdin, Writer: os.Stdout, MaxLineLength: -1})
	return nil
}
