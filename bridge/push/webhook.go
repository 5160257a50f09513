package push

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"codemode-bridge/bridge/ledger"
)

// A Webhook takes rows as JSON:
//
//	{"store": "...", "rows": [{"seq": 1, "hash": "...", "record": {...}}]}
//
// with the record as the log has it, byte for byte. A request has the headers
//
//	Codemode-Delivery   the store's id and the numbers of its first and last row: the same when it is sent again
//	Codemode-Timestamp  seconds since 1970, when it was sent
//	Codemode-Signature  v1= and the hexadecimal HMAC-SHA-256, under the secret, of the
//	                    timestamp, a full stop, and the body
//
// Any status from 200 to 299 acknowledges all of its rows. Redirects are not followed.
type Webhook struct {
	URL       string
	Secret    []byte
	Version   string            // of the program
	Transport http.RoundTripper // nil is the usual one
	Now       func() time.Time  // nil is time.Now
}

// body is what is sent of rows. It is put together by hand: encoding/json would write the
// records anew.
func body(store string, rows []ledger.Link) ([]byte, error) {
	name, err := json.Marshal(store)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, `{"store":%s,"rows":[`, name)
	for i, l := range rows {
		if i > 0 {
			out.WriteByte(',')
		}
		fmt.Fprintf(&out, `{"seq":%d,"hash":"%x","record":`, l.Seq, l.Hash)
		out.Write(l.Body)
		out.WriteByte('}')
	}
	out.WriteString("]}")
	return out.Bytes(), nil
}

// Send posts rows.
func (w *Webhook) Send(ctx context.Context, store string, rows []ledger.Link) error {
	text, err := body(store, rows)
	if err != nil {
		return fmt.Errorf("writing rows for the webhook: %w", err)
	}
	delivery := "test"
	if n := len(rows); n > 0 {
		delivery = fmt.Sprintf("%s/%d-%d", store, rows[0].Seq, rows[n-1].Seq)
	}
	return w.post(ctx, text, delivery)
}

// Try posts no rows: it says whether the webhook answers and knows the secret.
func (w *Webhook) Try(ctx context.Context) error { return w.Send(ctx, "", nil) }

func (w *Webhook) post(ctx context.Context, text []byte, delivery string) error {
	now := time.Now
	if w.Now != nil {
		now = w.Now
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.URL, bytes.NewReader(text))
	if err != nil {
		return fmt.Errorf("the webhook's address is not one") // it may have a secret
	}
	stamp := fmt.Sprint(now().Unix())
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "codemode-bridge/"+w.Version)
	req.Header.Set("Codemode-Delivery", delivery)
	req.Header.Set("Codemode-Timestamp", stamp)
	req.Header.Set("Codemode-Signature", "v1="+sign(w.Secret, stamp, text))
	client := &http.Client{Transport: w.Transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("no answer from %s", req.URL.Host)
	}
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, 64<<10)) // so that the connection can be used again
	switch code := res.StatusCode; {
	case code >= 200 && code <= 299:
		return nil
	case code >= 300 && code <= 399:
		return fmt.Errorf("%s redirects, which is not followed", req.URL.Host)
	default:
		return fmt.Errorf("%s answered %d", req.URL.Host, code)
	}
}

func sign(secret []byte, stamp string, text []byte) string {
	mac := hmac.New(sha256.New, secret)
	fmt.Fprintf(mac, "%s.", stamp)
	mac.Write(text)
	return hex.EncodeToString(mac.Sum(nil))
}
