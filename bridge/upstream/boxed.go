package upstream

// Boxed says what holds the child of a server now; nil if it has no box or there is no
// child.
func (s *Set) Boxed(name string) *Boxed {
	s.mu.Lock()
	one := s.servers[name]
	s.mu.Unlock()
	if one == nil {
		return nil
	}
	return one.status().Box
}
