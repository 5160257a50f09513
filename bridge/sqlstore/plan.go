package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"maps"
	"regexp"
	"slices"
	"strings"

	"codemode-bridge/bridge/ledger"
)

// A query becomes one statement that merges, in the order of numbers, the
// view of recent and either all of the table rows or its rows under each wanted
// value of one index:
//
//	SELECT ... FROM rows INDEXED BY rows_run WHERE run = 'a' AND (the rest)
//	UNION ALL SELECT ... FROM rows INDEXED BY rows_run WHERE run = 'b' AND (the rest)
//	UNION ALL SELECT ... FROM fresh WHERE (all of it)
//	ORDER BY seq LIMIT n
//
// Each part comes out of its index in that order already, so SQLite stops
// after n rows. Which index is used is decided here, by looking how many rows
// it would lead to. What SQL is not told of a query, Query.Selects sees to.
const (
	probed    = 1_000 // entries of an index that are counted to choose one
	ranged    = 5_000 // entries of the time index that are counted
	manyTools = 200   // tools, beyond which a pattern uses no index
	values    = 50    // values of one list, beyond which it uses no index
)

// A condition is SQL with its arguments.
type condition struct {
	text []string
	args []any
}

func (c *condition) add(text string, args ...any) {
	c.text, c.args = append(c.text, text), append(c.args, args...)
}

func (c *condition) in(column string, list []string) {
	if len(list) > 0 {
		c.text = append(c.text, column+" IN (?"+strings.Repeat(", ?", len(list)-1)+")")
		for _, v := range list {
			c.args = append(c.args, v)
		}
	}
}

// decided wants a name to be an approver's, or among those of several, or in
// whose name somebody decided.
func (c *condition) decided(names []string) {
	var ways []string
	for _, name := range names {
		ways = append(ways, "instr(approver, ?) OR instr(body->>'$.on_behalf_of', ?)")
		c.args = append(c.args, name, name)
	}
	c.text = append(c.text, "("+strings.Join(ways, " OR ")+")")
}

func (c condition) String() string { return strings.Join(append(c.text, "1"), " AND ") }

// A path is a way into table rows: an index and the values to look under.
type path struct {
	column string
	values []string
}

// planned returns the statement for the next page of a query.
func planned(ctx context.Context, c *sql.Conn, q ledger.Query, size int) (string, []any, error) {
	all := filter(q)
	old := condition{slices.Clone(all.text), slices.Clone(all.args)}
	if !q.Since.IsZero() || !q.Until.IsZero() {
		if err := boundTime(ctx, c, q, &old); err != nil {
			return "", nil, err
		}
	}
	way, err := shortest(ctx, c, q)
	if err != nil {
		return "", nil, err
	}
	const columns = "SELECT seq, hash, body FROM "
	var parts []string
	var args []any
	if way == nil {
		parts, args = append(parts, columns+"rows NOT INDEXED WHERE "+old.String()), append(args, old.args...)
	} else {
		for _, v := range way.values {
			parts = append(parts, columns+"rows INDEXED BY rows_"+way.column+" WHERE "+way.column+" = ? AND "+old.String())
			args = append(append(args, v), old.args...)
		}
	}
	parts, args = append(parts, columns+"fresh WHERE "+all.String()), append(args, all.args...)
	order := " ORDER BY seq LIMIT ?"
	if q.Newest {
		order = " ORDER BY seq DESC LIMIT ?"
	}
	return strings.Join(parts, " UNION ALL ") + order, append(args, size), nil
}

// plain is text that stands in JSON as it is.
var plain = regexp.MustCompile(`^[A-Za-z0-9_./:-]+$`)

// filter says of a query what SQL can say; every row that the query selects
// meets it.
func filter(q ledger.Query) condition {
	var c condition
	if q.After > 0 {
		c.add("seq > ?", q.After)
	}
	if q.Before != 0 {
		c.add("seq < ?", q.Before)
	}
	if !q.Since.IsZero() {
		c.add("time >= ?", ledger.Sortable(q.Since))
	}
	if !q.Until.IsZero() {
		c.add("time < ?", ledger.Sortable(q.Until))
	}
	for column, list := range lists(q) {
		c.in(column, list)
	}
	if len(q.Approvers) > 0 {
		c.decided(q.Approvers)
	}
	if prefix, _, some := strings.Cut(q.Tool, "*"); q.Tool != "" && !some {
		c.add("tool = ?", prefix)
	} else if prefix != "" {
		c.add("tool >= ? AND tool < ?", prefix, prefix+"\U0010ffff")
	}
	for _, path := range slices.Sorted(maps.Keys(q.Fields)) {
		if text := q.Fields[path]; plain.MatchString(text) {
			c.add("instr(body, ?)", text)
		}
	}
	return c
}

// lists yields the lists of a query with their columns, in one order.
func lists(q ledger.Query) func(func(string, []string) bool) {
	var events []string
	for _, e := range q.Events {
		events = append(events, string(e))
	}
	all := []path{
		{"run", q.Runs}, {"disposition", q.Dispositions}, {"outcome", q.Outcomes},
		{"risk", q.Risks}, {"event", events},
		{"body->>'$.session'", q.Sessions}, {"body->>'$.client'", q.Clients},
		{"body->>'$.profile'", q.Profiles}, {"body->>'$.channel'", q.Channels},
	}
	return func(yield func(string, []string) bool) {
		for _, p := range all {
			if len(p.values) > 0 && !yield(p.column, p.values) {
				return
			}
		}
	}
}

// boundTime narrows the numbers of table rows to those between the first and
// the last that lie in the query's time, if those are few. The clock may have
// gone back, so the rows between need not all lie in it.
func boundTime(ctx context.Context, c *sql.Conn, q ledger.Query, old *condition) error {
	from, to := "", "\U0010ffff"
	if !q.Since.IsZero() {
		from = ledger.Sortable(q.Since)
	}
	if !q.Until.IsZero() {
		to = ledger.Sortable(q.Until)
	}
	var first, last sql.NullInt64
	var n int
	err := c.QueryRowContext(ctx, `SELECT min(seq), max(seq), count(*) FROM
		(SELECT seq FROM rows INDEXED BY rows_time WHERE time >= ? AND time < ? LIMIT ?)`, from, to, ranged).Scan(&first, &last, &n)
	if err != nil || n == ranged {
		return err
	}
	if n == 0 {
		first.Int64, last.Int64 = 0, -1
	}
	old.add("seq BETWEEN ? AND ?", first.Int64, last.Int64)
	return nil
}

// shortest returns the index that leads to the fewest rows; nil when the query
// names no value of any.
func shortest(ctx context.Context, c *sql.Conn, q ledger.Query) (*path, error) {
	var ways []path
	for column, list := range lists(q) {
		if distinct := slices.Compact(slices.Sorted(slices.Values(list))); !strings.Contains(column, ">") && len(distinct) <= values {
			ways = append(ways, path{column, distinct})
		}
	}
	if q.Tool != "" || len(q.Servers) > 0 {
		tools, ok, err := tools(ctx, c, q)
		if err != nil {
			return nil, err
		}
		if ok {
			ways = append(ways, path{"tool", tools})
		}
	}
	if len(q.Approvers) > 0 {
		all, ok, err := approvers(ctx, c)
		if err != nil {
			return nil, err
		}
		if ok {
			ways = append(ways, path{"approver", all})
		}
	}
	var best *path
	fewest := 0
	for i, way := range ways {
		count := 0
		if len(ways) > 1 {
			for _, v := range way.values {
				var n int
				err := c.QueryRowContext(ctx, "SELECT count(*) FROM (SELECT 1 FROM rows INDEXED BY rows_"+way.column+" WHERE "+way.column+" = ? LIMIT ?)", v, probed).Scan(&n)
				if err != nil {
					return nil, err
				}
				count += n
			}
		}
		if best == nil || count < fewest {
			best, fewest = &ways[i], count
		}
	}
	return best, nil
}

// approvers lists those in table rows, if they are not too many: any of them may
// have decided in the name of one that is wanted.
func approvers(ctx context.Context, c *sql.Conn) (found []string, ok bool, err error) {
	for at := ""; len(found) <= values; found = append(found, at) {
		err := c.QueryRowContext(ctx, "SELECT approver FROM rows INDEXED BY rows_approver WHERE approver > ? ORDER BY approver LIMIT 1", at).Scan(&at)
		if errors.Is(err, sql.ErrNoRows) {
			return found, true, nil
		}
		if err != nil {
			return nil, false, err
		}
	}
	return nil, false, nil
}

// tools lists the tools in table rows that the query's pattern and servers
// allow, if they are not too many, by stepping through the index from one to
// the next.
func tools(ctx context.Context, c *sql.Conn, q ledger.Query) (found []string, ok bool, err error) {
	prefix, _, _ := strings.Cut(q.Tool, "*")
	if len(q.Servers) == 1 && len(prefix) < len(q.Servers[0]) {
		prefix = q.Servers[0]
	}
	for steps, at := 0, prefix; ; steps++ {
		var tool string
		comparison := ">"
		if steps == 0 {
			comparison = ">="
		}
		err := c.QueryRowContext(ctx, "SELECT tool FROM rows INDEXED BY rows_tool WHERE tool "+comparison+" ? ORDER BY tool LIMIT 1", at).Scan(&tool)
		if errors.Is(err, sql.ErrNoRows) || err == nil && !strings.HasPrefix(tool, prefix) {
			return found, true, nil
		}
		if err != nil || steps > 10*manyTools || len(found) > manyTools {
			return nil, false, err
		}
		at = tool
		if (q.Tool == "" || ledger.Glob(q.Tool, tool)) && (len(q.Servers) == 0 || slices.ContainsFunc(q.Servers, func(s string) bool {
			return strings.HasPrefix(tool, s)
		})) {
			found = append(found, tool)
		}
	}
}
