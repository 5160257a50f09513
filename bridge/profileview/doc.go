// Package profileview shows profiles to people as text: what each comes to (Rows,
// Write), why a call is decided as it is (Explain), and which entries and rules do
// nothing (Check). Package profiles decides; nothing here does.
//
//	allow: filesystem__write_file {"path":"/tmp/x"}
//	profile supervised, risk medium, not known to be repeatable
//
//	WHY
//	  rule temporary files
package profileview
