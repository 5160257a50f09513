package relay

import (
	"log/slog"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/dns/dnsmessage"
)

// A name that no host has is refused like others, and not shown: it may be made for a
// terminal, or to be copied into a shell.
func TestRefusedNames(t *testing.T) {
	r := &Relay{o: Options{Log: slog.New(slog.DiscardHandler)}}
	for _, name := range []string{"Telemetry.example.com.", "x;reboot.", "$(id).example.com.", "-x.", "a\x1b[2J.", "a b.", "_dns.example.com.", "."} {
		q := dnsmessage.Message{Header: dnsmessage.Header{ID: 7}, Questions: []dnsmessage.Question{
			{Name: dnsmessage.MustNewName(name), Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET},
		}}
		b, err := q.Pack()
		if err != nil {
			t.Fatal(err)
		}
		b, ok := r.reply(b)
		var a dnsmessage.Message
		if err := a.Unpack(b); !ok || err != nil || a.ID != 7 || a.RCode != dnsmessage.RCodeNameError || len(a.Answers) > 0 {
			t.Errorf("%q: %v, %v, %v", name, ok, err, a.GoString())
		}
	}
	if diff := cmp.Diff([]string{"telemetry.example.com", "_dns.example.com"}, r.Refused()); diff != "" {
		t.Error(diff)
	}
}
