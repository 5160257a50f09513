// Package secretstest is a keyring for tests: the Secret Service of a Linux desktop, with
// the bus that it is on. It speaks D-Bus on a socket, so that the keyring's real client
// talks to it, also one in another process.
package secretstest

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"maps"
	"net"
	"path/filepath"
	"strings"
	"sync"

	"github.com/godbus/dbus/v5"
)

// A Service is a Secret Service with one keyring.
type Service struct {
	listener net.Listener

	mu     sync.Mutex
	items  map[dbus.ObjectPath]item
	conns  map[net.Conn]bool
	next   int
	asked  int
	locked bool
}

type item struct {
	attributes map[string]string
	secret     []byte
}

// New serves on a socket in a folder, until Close.
func New(folder string) (*Service, error) {
	l, err := net.Listen("unix", filepath.Join(folder, "bus"))
	if err != nil {
		return nil, err
	}
	s := &Service{listener: l, items: map[dbus.ObjectPath]item{}, conns: map[net.Conn]bool{}}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.conns[conn] = true
			s.mu.Unlock()
			go s.serve(conn)
		}
	}()
	return s, nil
}

// Close ends the service and its connections.
func (s *Service) Close() error {
	err := s.listener.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	for conn := range s.conns {
		_ = conn.Close() // the client may have closed it
	}
	return err
}

// Address is what DBUS_SESSION_BUS_ADDRESS is to hold.
func (s *Service) Address() string { return "unix:path=" + s.listener.Addr().String() }

// Lock has the keyring refuse to be unlocked, or not any more.
func (s *Service) Lock(locked bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.locked = locked
}

// Put keeps a secret, as its client for a service and user would.
func (s *Service) Put(service, user, secret string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.put(map[string]string{"service": service, "username": user}, []byte(secret))
}

// Asked is how many secrets were handed out.
func (s *Service) Asked() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked
}

func (s *Service) put(attributes map[string]string, secret []byte) dbus.ObjectPath {
	for path, had := range s.items {
		if maps.Equal(had.attributes, attributes) {
			s.items[path] = item{attributes, secret}
			return path
		}
	}
	s.next++
	path := dbus.ObjectPath(fmt.Sprintf("%s/%d", login, s.next))
	s.items[path] = item{attributes, secret}
	return path
}

const (
	login   = dbus.ObjectPath("/org/freedesktop/secrets/collection/login")
	session = dbus.ObjectPath("/org/freedesktop/secrets/session/1")
	none    = dbus.ObjectPath("/") // no prompt
)

// serve answers one client.
func (s *Service) serve(conn net.Conn) {
	defer conn.Close()
	in := bufio.NewReader(conn)
	if !welcome(in, conn) {
		return
	}
	for {
		call, err := dbus.DecodeMessage(in)
		if err != nil {
			return
		}
		answer := s.answer(call)
		answer.Headers[dbus.FieldReplySerial] = dbus.MakeVariant(call.Serial())
		answer.Headers[dbus.FieldSender] = dbus.MakeVariant("org.freedesktop.secrets")
		if len(answer.Body) > 0 {
			answer.Headers[dbus.FieldSignature] = dbus.MakeVariant(dbus.SignatureOf(answer.Body...))
		}
		if answer.EncodeTo(conn, binary.LittleEndian) != nil {
			return
		}
	}
}

// welcome lets a client in, whoever it is: only this user reaches the socket.
func welcome(in *bufio.Reader, conn net.Conn) bool {
	if first, err := in.ReadByte(); err != nil || first != 0 {
		return false
	}
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return false
		}
		answer := "ERROR\r\n"
		switch line = strings.TrimSpace(line); {
		case line == "BEGIN":
			return true
		case line == "AUTH":
			answer = "REJECTED EXTERNAL\r\n"
		case strings.HasPrefix(line, "AUTH EXTERNAL"):
			answer = "OK 0123456789abcdef0123456789abcdef\r\n"
		}
		if _, err := conn.Write([]byte(answer)); err != nil {
			return false
		}
	}
}

func (s *Service) answer(call *dbus.Message) *dbus.Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	says := func(body ...any) *dbus.Message {
		return &dbus.Message{Type: dbus.TypeMethodReply, Headers: map[dbus.HeaderField]dbus.Variant{}, Body: body}
	}
	path, _ := call.Headers[dbus.FieldPath].Value().(dbus.ObjectPath)
	member, _ := call.Headers[dbus.FieldMember].Value().(string)
	switch member {
	case "Hello":
		return says(":1.1")
	case "AddMatch", "RemoveMatch", "Close":
		return says()
	case "Get": // the property Collections
		return says(dbus.MakeVariant([]dbus.ObjectPath{login}))
	case "OpenSession":
		return says(dbus.MakeVariant(""), session)
	case "Unlock":
		if s.locked {
			return says([]dbus.ObjectPath{}, none)
		}
		return says(call.Body[0], none)
	case "SearchItems":
		found := []dbus.ObjectPath{}
		for at, one := range s.items {
			if maps.Equal(one.attributes, call.Body[0].(map[string]string)) {
				found = append(found, at)
			}
		}
		return says(found)
	case "CreateItem":
		properties, secret := call.Body[0].(map[string]dbus.Variant), call.Body[1].([]any)
		attributes, _ := properties["org.freedesktop.Secret.Item.Attributes"].Value().(map[string]string)
		return says(s.put(attributes, secret[2].([]byte)), none)
	case "GetSecret":
		if one, ok := s.items[path]; ok {
			s.asked++
			return says(struct {
				Session           dbus.ObjectPath
				Parameters, Value []byte
				ContentType       string
			}{session, []byte{}, one.secret, "text/plain"})
		}
	case "Delete":
		delete(s.items, path)
		return says(none)
	}
	return &dbus.Message{Type: dbus.TypeError, Headers: map[dbus.HeaderField]dbus.Variant{
		dbus.FieldErrorName: dbus.MakeVariant("org.freedesktop.DBus.Error.UnknownMethod"),
	}, Body: []any{"there is no " + member + " here"}}
}
