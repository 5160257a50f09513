// Package profileview shows profiles to people as text: what each allows (Rows, Write),
// why a call is decided as it is (Explain), and which list entries and rules have no
// effect (Check). The decisions themselves are made by package profiles.
//
//	allow: filesystem__write_file {"path":"/tmp/x"}
//	profile supervised, risk medium, not known to be repeatable
//
//	WHY
//	  rule temporary files
package profileview
