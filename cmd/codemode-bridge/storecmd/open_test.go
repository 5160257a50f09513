package storecmd

import (
	"context"
	"fmt"
	"net"
	"testing"

	"codemode-bridge/bridge/config"
)

// Whoever waits for a database that does not answer keeps nobody else waiting, and waits
// no longer than their own context lasts; several who ask have one connection made.
func TestSharedOpensWithoutHoldingAnybody(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	came := make(chan net.Conn, 8)
	go func() {
		for {
			c, err := silent.Accept()
			if err != nil {
				close(came)
				return
			}
			came <- c
		}
	}()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	refusing := closed.Addr()
	closed.Close()
	place := func(at net.Addr) config.Audit {
		text := fmt.Sprintf(`{"id": "a", "store": "postgres://bridge@%s/x?sslmode=disable", "storeKey": "${KEY}"}`, at)
		cfg, err := config.Parse("/x/config.json", []byte(text), func(string) (string, bool) { return "the key of the store of a test", true })
		if err != nil {
			t.Fatal(err)
		}
		return cfg.Audit
	}
	s := NewShared(nil)
	patient, giveUp := context.WithCancel(t.Context())
	waited := make(chan error, 2)
	for range 2 {
		go func() {
			_, err := s.at(patient, place(silent.Addr()))
			waited <- err
		}()
	}
	defer (<-came).Close() // it is being opened
	if _, err := s.at(t.Context(), place(refusing)); err == nil {
		t.Error("a database that refuses was opened")
	}
	if _, err := s.at(t.Context(), config.Audit{}); err == nil {
		t.Error("no database was opened")
	}
	giveUp()
	for range 2 {
		if err := <-waited; err == nil {
			t.Error("a database that does not answer was opened")
		}
	}
	if err := s.Close(); err != nil { // does not wait for it either
		t.Error(err)
	}
	silent.Close()
	for c := range came {
		c.Close()
		t.Error("it was opened twice at once")
	}
}
