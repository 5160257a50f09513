package pgstore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"codemode-bridge/bridge/ledger"
)

const (
	patience    = 10 * time.Second // with a statement, a round trip and a new connection
	silence     = 5 * time.Second  // of a client in a transaction, before the server ends it
	defaultName = "codemode_bridge"
)

// Options say where a store is and how it is kept.
type Options struct {
	URL string // postgres://...; it has the password
	// Secret encrypts the store's key in the database: every bridge that uses the store
	// has the same. If it is empty, it is in SecretFile, which is made with a new store.
	Secret     []byte
	SecretFile string

	CheckpointFile string           // a place apart, to which checkpoints are appended; none if empty
	ReadOnly       bool             // write nothing and make nothing; Record and Prune fail
	Clock          func() time.Time // of records without a time and of checkpoints; nil is time.Now
	Logger         *slog.Logger     // nil means no log
	Patience       time.Duration    // with the server; 0 is ten seconds

	config *pgx.ConnConfig
	schema string
}

// prepare reads the address. No error of it has the password.
func (o *Options) prepare() error {
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Patience == 0 {
		o.Patience = patience
	}
	c, err := pgx.ParseConfig(o.URL)
	if err != nil {
		return errors.New("reading the address of the store: it is not postgres://USER:PASSWORD@HOST:PORT/DATABASE, with options that PostgreSQL knows")
	}
	o.schema = defaultName
	if path := c.RuntimeParams["search_path"]; path != "" {
		first, _, _ := strings.Cut(path, ",")
		o.schema = strings.Trim(strings.TrimSpace(first), `"`)
	}
	for name, value := range map[string]string{
		"application_name":                    "codemode-bridge",
		"statement_timeout":                   fmt.Sprint(o.Patience.Milliseconds()),
		"idle_in_transaction_session_timeout": fmt.Sprint(min(silence, o.Patience).Milliseconds()),
		"client_encoding":                     "UTF8",
	} {
		if c.RuntimeParams[name] == "" {
			c.RuntimeParams[name] = value
		}
	}
	c.RuntimeParams["search_path"] = pgx.Identifier{o.schema}.Sanitize()
	if c.ConnectTimeout == 0 || c.ConnectTimeout > o.Patience {
		c.ConnectTimeout = o.Patience
	}
	o.config = c
	return nil
}

// Where returns the store's place for people: without the password.
func Where(url string) string {
	c, err := pgx.ParseConfig(url)
	if err != nil {
		return "the database"
	}
	if strings.HasPrefix(c.Host, "/") {
		return fmt.Sprintf("database %s at %s", c.Database, c.Host)
	}
	return fmt.Sprintf("database %s at %s", c.Database, net.JoinHostPort(c.Host, fmt.Sprint(c.Port)))
}

// connect makes a connection. If it is to write, the server must be able to.
func (o *Options) connect(ctx context.Context) (*pgx.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, o.Patience)
	defer cancel()
	conn, err := pgx.ConnectConfig(ctx, o.config.Copy())
	if err != nil {
		return nil, classed(err)
	}
	var standby bool
	var readOnly, encoding string
	err = conn.QueryRow(ctx, "SELECT pg_is_in_recovery(), current_setting('transaction_read_only'), current_setting('server_encoding')").Scan(&standby, &readOnly, &encoding)
	switch {
	case err != nil:
	case encoding != "UTF8":
		err = fmt.Errorf("the database has the encoding %s: make one with UTF8", encoding)
	case o.ReadOnly:
	case standby:
		err = errStandby
	case readOnly == "on":
		err = errReadOnlyServer
	}
	if err != nil {
		hangUp(conn)
		return nil, classed(err)
	}
	return conn, nil
}

var (
	errStandby        = unavailable("the server is a stand-by, which nobody can write to: name the primary in the address, or all servers with target_session_attrs=read-write")
	errReadOnlyServer = unavailable("the database is read-only (default_transaction_read_only)")
)

// hangUp closes a connection without waiting for a server that does not answer.
func hangUp(conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	_ = conn.Close(ctx)
}

// pool opens the connections that read.
func (o *Options) pool(ctx context.Context, most int32) (*pgxpool.Pool, error) {
	c, err := pgxpool.ParseConfig(o.URL)
	if err != nil {
		return nil, errors.New("reading the address of the store: it has options that no pool knows")
	}
	c.ConnConfig, c.MaxConns, c.MinConns, c.MaxConnIdleTime = o.config.Copy(), most, 0, time.Minute
	// A connection that was lost is not read from: reads are rare enough for a round trip more.
	c.ShouldPing = func(context.Context, pgxpool.ShouldPingParams) bool { return true }
	return pgxpool.NewWithConfig(ctx, c)
}

// An unusable is an ErrUnavailable that says only why. What cannot be done, and with which
// part of the store, is said around it.
type unusable struct{ error }

func (e unusable) Unwrap() error     { return e.error }
func (e unusable) Is(err error) bool { return err == ledger.ErrUnavailable }

func unavailable(format string, args ...any) error {
	return unusable{fmt.Errorf(format, args...)}
}

// classed makes err wrap ErrDamaged or ErrUnavailable, and say what people can do.
func classed(err error) error {
	var pg *pgconn.PgError
	switch {
	case err == nil || errors.Is(err, ledger.ErrDamaged) || errors.Is(err, ledger.ErrUnavailable) || errors.Is(err, context.Canceled):
		return err
	case errors.As(err, &pg):
		return classedByServer(pg)
	case errors.Is(err, context.DeadlineExceeded) || pgconn.Timeout(err):
		return unavailable("the database does not answer in time")
	}
	var connecting *pgconn.ConnectError
	if errors.As(err, &connecting) {
		return unavailable("the database cannot be reached: %w", err)
	}
	return unavailable("the connection to the database was lost: %w", err)
}

// hints say what is wrong, by the beginning of PostgreSQL's error codes.
var hints = []struct{ code, text string }{
	{"25006", "the database is read-only, or its server became a stand-by"},
	{"53100", "the database's disk is full"},
	{"53300", "the database has no connection left (max_connections)"},
	{"53", "the database lacks resources"},
	{"57014", "the database took too long"},
	{"57P05", "the database ended a connection that was idle"},
	{"57P", "the database is being shut down or started, or ended the connection"},
	{"28", "the user or the password is refused by the database"},
	{"3D000", "there is no such database: make it with CREATE DATABASE"},
	{"42501", "the database's user lacks a right"},
	{"40", "the database gave up a transaction"},
	{"55P03", "the database took too long to get a lock"},
}

func classedByServer(pg *pgconn.PgError) error {
	text := fmt.Sprintf("%s (%s)", pg.Message, pg.Code)
	for _, h := range hints {
		if strings.HasPrefix(pg.Code, h.code) {
			return unavailable("%s: %s", h.text, text)
		}
	}
	switch {
	case strings.HasPrefix(pg.Code, "XX00"), pg.Code == "42P01", pg.Code == "42703":
		return ledger.Damaged("the database says: %s", text)
	}
	return unavailable("the database says: %s", text)
}

// text returns s as PostgreSQL can keep it: its texts have no NUL, and are UTF-8.
func text(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\ufffd"), "\x00", "\ufffd")
}

// Writable says what keeps a bridge from writing to the store: a server that is a
// stand-by or read-only, or a right that the user lacks.
func Writable(ctx context.Context, o Options) error {
	o.ReadOnly = false
	if err := o.prepare(); err != nil {
		return err
	}
	conn, err := o.connect(ctx)
	if err != nil {
		return err
	}
	defer hangUp(conn)
	ctx, cancel := context.WithTimeout(ctx, o.Patience)
	defer cancel()
	var lacks string
	err = conn.QueryRow(ctx, `SELECT coalesce(string_agg(name, ', '), '') FROM unnest($1::text[]) AS name
		WHERE CASE WHEN to_regclass(name) IS NULL THEN false -- it comes with the next start
			ELSE NOT has_table_privilege(name, 'INSERT') OR NOT has_table_privilege(name, 'UPDATE') OR NOT has_table_privilege(name, 'DELETE') END`,
		[]string{"meta", "heads", "log", "journals", "entries", "shared", "uses", "requests", "grants", "held", "documents", "replicas", "handles"}).Scan(&lacks)
	if err == nil && lacks != "" {
		err = unavailable("the database's user may not write the tables %s", lacks)
	}
	return classed(err)
}
