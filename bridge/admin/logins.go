package admin

import (
	"net/http"
	"net/url"
)

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
