package known

import (
	"slices"
	"strings"
)

// statement returns "select" for a statement of SQL that only selects, or explains a
// select without running it, that calls only functions that compute, and that every
// dialect reads alike; empty for all others.
//
// It knows what is harmless and nothing else: no second statement, no comment, no
// quotes that dialects end differently, of system catalogues only those that describe
// tables and indexes.
func statement(sql string) string {
	words, ok := sqlWords(strings.TrimRight(strings.TrimSpace(sql), "; \n\t"))
	if ok && len(words) > 1 && words[0] == "explain" {
		words = words[1:]
	}
	if ok && len(words) > 1 && words[0] == "with" && words[1] != "recursive" {
		words = words[1:] // what follows is a select unless there is a word that changes something
	} else if !ok || len(words) == 0 || words[0] != "select" {
		return ""
	}
	for i, w := range words {
		name := strings.TrimPrefix(w, `"`)
		system := strings.HasPrefix(name, "pg_") || strings.HasPrefix(name, "sqlite_") || name == "mysql"
		called := i+1 < len(words) && words[i+1] == "("
		switch {
		case slices.Contains(changing, w), system && !called && !slices.Contains(describing, name):
			return ""
		case w != "(" || i == 0:
		case i > 1 && words[i-2] == ".", !slices.Contains(beforeBracket, words[i-1]): // a function of a schema, or one that is not known
			return ""
		}
	}
	return "select"
}

// describing are the catalogues of PostgreSQL that say how tables are built, and have
// neither passwords nor what others do.
var describing = strings.Fields(`pg_catalog pg_attribute pg_class pg_constraint pg_description pg_enum pg_extension pg_index pg_indexes pg_matviews pg_namespace
	pg_sequences pg_stat_user_indexes pg_stat_user_tables pg_tables pg_type pg_views`)

// changing are words of statements that do more than select. As names of columns they
// are asked about, which is no harm.
var changing = strings.Fields(`into for with insert update delete merge replace upsert copy call do execute exec prepare lock set reset
	create alter drop truncate grant revoke attach detach pragma vacuum analyze load outfile dumpfile program procedure handler
	begin commit rollback savepoint declare fetch listen notify`)

// beforeBracket are the words that may stand before a bracket: those of the language, and
// functions that compute.
var beforeBracket = strings.Fields(`( , = < > + - * / % | ! select from where and or not in exists any some all as on using over filter within group by having
	values case when then else between like ilike is distinct union intersect except join lateral limit offset interval
	count sum avg min max abs round floor ceil ceiling trunc mod power sqrt sign coalesce nullif greatest least cast
	lower upper length char_length trim ltrim rtrim substr substring left right position strpos concat concat_ws initcap
	date_trunc date_part extract age date time to_char to_date to_timestamp now make_date strftime datetime julianday
	row_number rank dense_rank ntile lag lead first_value last_value string_agg array_agg group_concat bool_and bool_or
	stddev variance corr percentile_cont percentile_disc mode numeric decimal varchar char timestamp timestamptz json_agg
	materialized pg_relation_size pg_table_size pg_indexes_size pg_total_relation_size pg_size_pretty pg_get_indexdef pg_get_constraintdef`)

// sqlWords takes a statement apart into words in lower case and single signs. A text in
// single quotes becomes the word "'", a name in double quotes is itself. It reports
// false for what dialects read differently.
func sqlWords(sql string) (words []string, ok bool) {
	for sql != "" {
		c := sql[0]
		switch {
		case c == ' ' || c == '\n' || c == '\t' || c == '\r':
			sql = sql[1:]
		case c == '\'' || c == '"':
			end := strings.IndexByte(sql[1:], c) + 1
			inside := sql[1:max(end, 1)]
			if end == 0 || strings.ContainsAny(inside, "\\\x00") || c == '"' && !isWord(inside) {
				return nil, false
			}
			if end+1 < len(sql) && (sql[end+1] == c || isWordByte(sql[end+1])) { // a doubled quote, or no end of the word
				return nil, false
			}
			words = append(words, map[byte]string{'\'': "'", '"': `"` + inside}[c])
			sql = sql[end+1:]
		case isWordByte(c):
			n := 0
			for n < len(sql) && isWordByte(sql[n]) {
				n++
			}
			if n < len(sql) && (sql[n] == '\'' || sql[n] == '"' || sql[n] == '&') { // E'…', U&'…'
				return nil, false
			}
			words = append(words, strings.ToLower(sql[:n]))
			sql = sql[n:]
		case strings.HasPrefix(sql, "--"), strings.HasPrefix(sql, "/*"), !strings.ContainsRune("()[],.=<>+-*/%|!:", rune(c)):
			return nil, false
		default:
			words = append(words, sql[:1])
			sql = sql[1:]
		}
	}
	return words, true
}

func isWord(s string) bool {
	for i := range len(s) {
		if !isWordByte(s[i]) {
			return false
		}
	}
	return s != ""
}

func isWordByte(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}
