package confine

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The profile of a Mac says what the box says: what is below comes later, and the last rule
// that fits decides.
func TestSeatbelt(t *testing.T) {
	const begin = `(version 1)
(deny default)
(allow process-fork)
(allow signal (target same-sandbox))
(allow sysctl-read)
(allow file-read-metadata)
(allow file-ioctl
  (literal "/dev/dtracehelper"))
(allow mach-lookup
  (global-name "com.apple.system.opendirectoryd.libinfo")
  (global-name "com.apple.system.logger"))
(allow file-read*
  (subpath "/usr")
  (subpath "/bin")
  (subpath "/sbin")
  (subpath "/System")
  (subpath "/Library/Frameworks")
  (subpath "/Library/Apple")
  (subpath "/opt")
  (subpath "/dev")
  (subpath "/private/etc/ssl")
  (subpath "/private/etc/localtime")
  (subpath "/private/var/db/timezone")
  (subpath "/private/var/db/dyld"))
(allow file-read* file-write*
  (literal "/dev/null")
  (literal "/dev/zero")
  (literal "/dev/tty"))
(allow file-read* file-write*
  (subpath "/private/tmp/box"))
`
	for _, row := range []struct {
		name   string
		box    Box
		places []place
		want   string
	}{
		{"nothing", Box{}, nil, "(allow process-exec*)\n"},
		{
			"a folder with one that is kept, and programs", Box{Run: []string{"/usr/bin/git"}},
			[]place{{`/Users/me/a "b"`, true}, {`/Users/me/a "b"/kept`, false}},
			`(allow file-read* file-write*
  (subpath "/Users/me/a \"b\""))
(allow file-read*
  (subpath "/Users/me/a \"b\"/kept"))
(deny file-write*
  (subpath "/Users/me/a \"b\"/kept"))
(allow process-exec*
  (literal "/usr/bin/git"))
`,
		},
		{
			"hosts", Box{Net: Net{Hosts: []Host{{"api.example.com", 443}}}}, nil,
			`(allow process-exec*)
(allow network*)
(allow system-socket)
(allow mach-lookup
  (global-name "com.apple.dnssd.service"))
`,
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			if diff := cmp.Diff(begin+row.want, row.box.seatbelt(row.places, "/private/tmp/box")); diff != "" {
				t.Errorf("want and got:\n%s", diff)
			}
		})
	}
}
