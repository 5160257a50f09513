package elicit

import "testing"

func TestPagesOfServers(t *testing.T) {
	for _, address := range []string{
		"https://login.example.com/start?x=1#y", "https://login.example.com.:8443/", "https://8.8.8.8/", "https://[2606:4700::1111]/",
		"https://xn--bcher-kva.example/", "https://localhost.example.com/", "https://127.0.0.1.example.com/",
	} {
		if _, err := page(address); err != nil {
			t.Errorf("%s: %v", address, err)
		}
	}
	for _, address := range []string{
		"http://example.com/", "https://me@example.com/", "https:example.com", "https:///127.0.0.1/", "https://example.com\\@127.0.0.1/", "https://example.com/ x",
		"https://localhost/", "https://LOCALHOST./", "https://a.localhost:9443/", "https://printer.local/", "https://metadata.google.internal/", "https://router.home.arpa/", "https://intranet/", "https://wiki.corp/",
		"https://127.0.0.1/", "https://127.1/", "https://2130706433/", "https://0177.0.0.1/", "https://0x7f.0.0.1/", "https://0x7f000001/", "https://127.0.0.1./", "https://127.0.0x1/", "https://1.0x/",
		"https://%31%32%37.0.0.1/", "https://loc%61lhost/", "https://127%E3%80%820.0.1/", "https://%EF%BD%8Cocalhost/",
		"https://0.0.0.0/", "https://10.0.0.1/", "https://172.16.0.1/", "https://192.168.1.1/", "https://169.254.169.254/", "https://100.64.0.1/", "https://224.0.0.1/", "https://255.255.255.255/",
		"https://[::1]/", "https://[::]/", "https://[::ffff:127.0.0.1]/", "https://[::ffff:10.0.0.1]:9443/", "https://[::127.0.0.1]/", "https://[fe80::1]/", "https://[fe80::1%25eth0]/", "https://[fd00::1]/",
		"https://[64:ff9b::7f00:1]/", "https://[2002:7f00:1::]/", "https://[2001::1]/", "https://[ff02::1]/",
	} {
		if u, err := page(address); err == nil {
			t.Errorf("%s is opened, at %s", address, u.Host)
		}
	}
}
