package admin

import (
	"context"
	"net/http"
	"net/url"
)

// Logins are the logins at upstream servers.
type Logins interface {
	// Begin begins the login at a server, and returns the link at which a
	// person continues, in a browser on the machine that the bridge runs on,
	// since the login is redirected to that machine. An earlier attempt ends.
	// ErrUnknown means that no server of that name needs logins.
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
		return invalid("the server's login is at no web address", "") // another scheme must not get into a link
	}
	return answer(w, http.StatusOK, map[string]any{"server": server, "link": link})
}
