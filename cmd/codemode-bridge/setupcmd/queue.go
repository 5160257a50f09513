package setupcmd

import (
	"encoding/hex"
	"fmt"
	"os"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/clients"
	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/setup"
)

// A queueing is what install arranged for a client that cannot ask.
type queueing struct {
	arranged bool
	name     string // of the approver who was added; empty if there was one
	token    string
}

// queueFor arranges that what the client's scripts ask waits for approvers.
func queueFor(con *Bridge, in *setup.Installation, path string) (queueing, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return queueing{}, fmt.Errorf("reading the configuration: %w", err)
	}
	token, sum := approval.NewToken()
	q := queueing{arranged: true, name: con.User(), token: token}
	added, err := in.Queue(text, func(text []byte) (*config.Config, error) {
		return con.Parse(path, text)
	}, setup.Approver{Name: q.name, Role: string(config.RoleAdmin), SHA256: hex.EncodeToString(sum[:])})
	if !added {
		q.name, q.token = "", ""
	}
	if err == nil && !con.JSON {
		con.Told("%s cannot show questions: what its scripts ask waits for an approver instead, and a notice on the desktop says so (--no-queue leaves that out)", in.Place.Client.Title)
	}
	return q, err
}

// say tells the person where they answer.
func (q queueing) say(con *Bridge, place clients.Place) error {
	if !q.arranged {
		return nil
	}
	if q.name != "" {
		fmt.Fprintf(con.Err, "the token of %s, who answers and is an admin; it is not kept anywhere:\n", q.name)
		if _, err := fmt.Fprintln(con.Out, q.token); err != nil {
			return err
		}
	}
	con.Told("answer what %s asks on the page that the bridge has while it runs: codemode-bridge approvals open; or in a terminal: codemode-bridge approvals watch", place.Client.Title)
	return nil
}

// add adds what say says to the answer of --json.
func (q queueing) add(row map[string]any) {
	if q.arranged {
		row["queued"] = true
	}
	if q.name != "" {
		row["approver"] = map[string]any{"name": q.name, "token": q.token}
	}
}
