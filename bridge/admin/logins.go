package admin

import (
	"context"
	"net/http"
	"net/url"
)

// Logins are the logins at upstream servers.
type Logins interface {
	// Begin begins the login at a server, and returns the link at which a
	// person goes on, in a browser of the machine that the bridge runs on:
	// there it comes back to. One that was begun before ends. ErrUnknown means
	// that nobody logs in to a server of that name.
	Begin(ctx context.Context, server, by string) (link string, err error)
}

func (s *Site) beginLogin(who *caller, w http.ResponseWriter, r *http.Request) error {
	if s.o.Logins == nil {
		return missing("logins")
	}
	var server string
	if err := s.read(w, r, fields{"server": &server}); err != nil {
		return err
	}
	link, err := s.o.Logins.Begin(r.Context(), server, who.Name)
	if err != nil {
		return err
	}
	if u, err := url.Parse(link); err != nil || u.Scheme != "https" && u.Scheme != "http" {
		return invalid("the server's login is at no web address", "") // and would be something else in a link
	}
	return answer(w, http.StatusOK, map[string]any{"server": server, "link": link})
}
