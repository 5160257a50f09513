package servecmd

import (
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
)

// firstSocket is the descriptor of the first socket that a service manager hands over.
const firstSocket = 3

// sockets are the listeners that the service manager has opened for this process, by name.
// The variables that say so are removed, so that no child takes them for its own.
var sockets = sync.OnceValue(func() map[string]net.Listener {
	all := make(map[string]net.Listener)
	pid, count, names := os.Getenv("LISTEN_PID"), os.Getenv("LISTEN_FDS"), os.Getenv("LISTEN_FDNAMES")
	for _, name := range []string{"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"} {
		_ = os.Unsetenv(name) // the name is a good one
	}
	n, err := strconv.Atoi(count)
	if err != nil || pid != strconv.Itoa(os.Getpid()) || n > 16 {
		return all
	}
	called := strings.Split(names, ":")
	for i := range n {
		name := SocketHTTP
		if i < len(called) && called[i] == SocketPage {
			name = SocketPage
		}
		file := os.NewFile(uintptr(firstSocket+i), name)
		l, err := net.FileListener(file)
		_ = file.Close() // the listener has its own
		if err == nil && all[name] == nil {
			all[name] = l
		}
	}
	return all
})

// inherited returns the listener with a name, nil if the service manager opened none.
func inherited(name string) net.Listener { return sockets()[name] }

// notifySocket is where a service manager listens; empty if there is none.
var notifySocket = sync.OnceValue(func() string {
	at := os.Getenv("NOTIFY_SOCKET")
	_ = os.Unsetenv("NOTIFY_SOCKET")
	return at
})

// Notify tells the service manager, if there is one, how the bridge is. An error is of no
// consequence: the manager says that it was not told.
func Notify(state string) {
	at := notifySocket()
	if at == "" {
		return
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: at, Net: "unixgram"}) // which takes @ for an abstract name
	if err != nil {
		return
	}
	defer conn.Close()
	_, _ = conn.Write([]byte(state))
}
