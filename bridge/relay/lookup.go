package relay

import (
	"errors"
	"net"
	"slices"
	"strings"

	"golang.org/x/net/dns/dnsmessage"
)

// maxQuestion is the most that a question about a name takes over UDP.
const maxQuestion = 512

// answer answers questions about names until the relay ends.
func (r *Relay) answer(conn net.PacketConn) {
	b := make([]byte, maxQuestion)
	for {
		n, from, err := conn.ReadFrom(b)
		if err != nil {
			if !r.goesOn(err) {
				return
			}
			continue
		}
		if reply, ok := r.reply(b[:n]); ok {
			conn.WriteTo(reply, from) // who asked asks again
		}
	}
}

// ttl is for how many seconds an answer holds. The addresses of a box never change.
const ttl = 60

// reply answers one message; ok is false where it is no question.
func (r *Relay) reply(message []byte) (reply []byte, ok bool) {
	var p dnsmessage.Parser
	header, err := p.Start(message)
	if err != nil || header.Response {
		return nil, false
	}
	q, err := p.Question()
	if err != nil {
		return nil, false
	}
	name := strings.ToLower(strings.TrimSuffix(q.Name.String(), "."))
	known := r.o.Met != nil || slices.ContainsFunc(r.o.Hosts, func(h Host) bool { return names(h.Name, name) })
	answer := dnsmessage.Header{
		ID: header.ID, Response: true, OpCode: header.OpCode, RecursionDesired: header.RecursionDesired, RecursionAvailable: true,
	}
	if !known {
		answer.RCode = dnsmessage.RCodeNameError
		r.refuse(name)
	}
	b := dnsmessage.NewBuilder(nil, answer)
	b.EnableCompression()
	err = errors.Join(b.StartQuestions(), b.Question(q))
	if known && q.Type == dnsmessage.TypeA && q.Class == dnsmessage.ClassINET && err == nil {
		if a, ok := r.address(name); ok {
			err = errors.Join(b.StartAnswers(), b.AResource(dnsmessage.ResourceHeader{
				Name: q.Name, Class: dnsmessage.ClassINET, TTL: ttl,
			}, dnsmessage.AResource{A: a.As4()}))
		}
	}
	if err != nil {
		return nil, false
	}
	reply, err = b.Finish()
	return reply, err == nil
}
