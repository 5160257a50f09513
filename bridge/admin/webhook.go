package admin

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"time"
)

// A Webhook is told when a request can be answered, and when it no longer can. It
// decides nothing: its receivers answer through the API with a token of their own, or
// on the page.
//
// A delivery is a POST of JSON, an [Event] of type pending or settled with the
// page's address as "link"; it holds no arguments. It has the headers
//
//	Codemode-Delivery   a unique id, the same when it is sent again
//	Codemode-Timestamp  seconds since 1970, when it was sent
//	Codemode-Signature  v1= and the hexadecimal HMAC-SHA-256, under the secret,
//	                    of the timestamp, a full stop, and the body
//
// Any status from 200 to 299 accepts it. After 408, 429, 5xx or no answer it is sent
// again, five times in all, with growing pauses. Redirects are not followed. If more
// than 100 deliveries wait, the oldest are dropped: the newest requests are the ones
// that can still be answered.
type Webhook struct {
	URL    string
	Secret []byte
}

const (
	webhookTimeout = 10 * time.Second
	webhookTries   = 5
	webhookPause   = time.Second // before the second try; it doubles
	webhookQueue   = 100
)

type delivery struct {
	id   string
	body []byte
}

// webhooks delivers events to the configured webhooks.
type webhooks struct{ *Site }

// start starts the deliveries, if there are any webhooks.
func (s webhooks) start() {
	if len(s.o.Webhooks) == 0 {
		return
	}
	var queues []chan delivery
	for _, hook := range s.o.Webhooks {
		queue := make(chan delivery, webhookQueue)
		queues = append(queues, queue)
		s.wait.Go(func() { s.deliver(hook, queue) })
	}
	s.wait.Go(func() { s.announce(queues) })
}

// announce watches for events and queues them. Requests that were settled before it
// began are not announced.
func (s webhooks) announce(queues []chan delivery) {
	w := &watch{site: s.Site}
	for {
		requested := s.o.Requests.Changed() // before looking: nothing is missed
		events, err := w.look(s.ctx)
		if err != nil && s.ctx.Err() == nil {
			s.o.Logger.Error("looking for webhooks", "err", err)
		}
		for _, e := range events {
			if e.ID == "" || !s.ours(e.ID) {
				continue
			}
			body, err := json.Marshal(struct {
				Event
				Link string `json:"link"`
			}{e, s.o.Base + "/r/" + e.ID})
			if err != nil {
				s.o.Logger.Error("writing a webhook", "err", err)
				continue
			}
			d := delivery{newSecret(), body}
			for i, queue := range queues {
				if enqueue(queue, d) {
					s.o.Logger.Warn("a webhook does not keep up: its oldest event is dropped", "webhook", i)
				}
			}
		}
		select {
		case <-requested:
		case <-s.ctx.Done():
			return
		}
	}
}

// enqueue adds a delivery to a queue, and reports whether the oldest one was dropped to
// make room. It is the queue's only writer.
func enqueue(queue chan delivery, d delivery) (dropped bool) {
	for {
		select {
		case queue <- d:
			return dropped
		default:
		}
		select {
		case <-queue:
			dropped = true
		default: // the reader was quicker
		}
	}
}

// ours reports whether a request belongs to this process, or all are announced.
func (s webhooks) ours(id string) bool {
	if s.o.Bridge == "" {
		return true
	}
	e, err := s.entry(s.ctx, id)
	return err == nil && e.Bridge == s.o.Bridge
}

// deliver sends the deliveries in a queue one after the other.
func (s webhooks) deliver(hook Webhook, queue <-chan delivery) {
	client := &http.Client{Transport: s.o.Transport, Timeout: webhookTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	for {
		select {
		case d := <-queue:
			if err := s.deliverOne(client, hook, d); err != nil && s.ctx.Err() == nil {
				s.o.Logger.Warn("a webhook was not delivered", "err", err) // it names no URL: some hold a secret
			}
		case <-s.ctx.Done():
			return
		}
	}
}

// deliverOne sends one delivery until it is accepted or the tries are used up.
func (s webhooks) deliverOne(client *http.Client, hook Webhook, d delivery) error {
	pause := webhookPause
	for try := 1; ; try++ {
		again, err := s.post(client, hook, d)
		if err == nil || !again || try == webhookTries {
			return err
		}
		t := time.NewTimer(pause + rand.N(pause/4))
		select {
		case <-t.C:
		case <-s.ctx.Done():
			t.Stop()
			return s.ctx.Err()
		}
		pause *= 2
	}
}

// post sends a delivery once. It reports whether it is worth another try.
func (s webhooks) post(client *http.Client, hook Webhook, d delivery) (again bool, err error) {
	ctx, cancel := context.WithTimeout(s.ctx, webhookTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, hook.URL, bytes.NewReader(d.body))
	if err != nil {
		return false, fmt.Errorf("its address is not one")
	}
	stamp := fmt.Sprint(s.o.Now().Unix())
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "codemode-bridge")
	req.Header.Set("Codemode-Delivery", d.id)
	req.Header.Set("Codemode-Timestamp", stamp)
	req.Header.Set("Codemode-Signature", "v1="+sign(hook.Secret, stamp, d.body))
	res, err := client.Do(req)
	if err != nil {
		return true, fmt.Errorf("no answer from %s", req.URL.Host)
	}
	defer res.Body.Close()
	io.Copy(io.Discard, io.LimitReader(res.Body, 64<<10)) // so that the connection can be used again
	switch code := res.StatusCode; {
	case code >= 200 && code <= 299:
		return false, nil
	case code >= 300 && code <= 399:
		return false, fmt.Errorf("%s redirects, which is not followed", req.URL.Host)
	default:
		return code == http.StatusRequestTimeout || code == http.StatusTooManyRequests || code >= 500,
			fmt.Errorf("%s answered %d", req.URL.Host, code)
	}
}

func sign(secret []byte, stamp string, body []byte) string {
	mac := hmac.New(sha256.New, secret)
	fmt.Fprintf(mac, "%s.", stamp)
	mac.Write(body)
	return hex.EncodeToString(mac.Sum(nil))
}
