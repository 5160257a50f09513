package confine

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// described is what the launcher says of a socket that it passes on.
type described struct {
	Kind SocketKind `json:"kind"`
	Port uint16     `json:"port"`
}

// network prepares the network of this process, which must be one of its own: it can
// speak to itself, and for each host of the box there is a socket that the bridge
// serves.
func network(n Net) (fds []int, what []described, err error) {
	if err := loopback(); err != nil {
		return nil, nil, fmt.Errorf("starting the loopback: %w", err)
	}
	if n.None() {
		return nil, nil, nil
	}
	routes := []netip.Prefix{Names}
	var ports []uint16
	for _, h := range n.Hosts {
		if a, err := netip.ParseAddr(h.Name); err == nil && a.Is4() && !a.IsLoopback() {
			routes = append(routes, netip.PrefixFrom(a, 32))
		}
		if !slices.Contains(ports, h.Port) {
			ports = append(ports, h.Port)
		}
	}
	for _, r := range routes {
		if err := local(r); err != nil {
			return nil, nil, fmt.Errorf("leading %s here: %w", r, err)
		}
	}
	fd, err := listen(unix.SOCK_DGRAM, netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), 53))
	if err != nil {
		return nil, nil, fmt.Errorf("answering about names: %w", err)
	}
	fds, what = append(fds, fd), append(what, described{Kind: Lookup})
	for _, port := range ports {
		fd, err := listen(unix.SOCK_STREAM, netip.AddrPortFrom(netip.IPv4Unspecified(), port))
		if err != nil {
			return nil, nil, fmt.Errorf("listening for port %d: %w", port, err)
		}
		fds, what = append(fds, fd), append(what, described{Kind: Relay, Port: port})
	}
	return fds, what, nil
}

// listen makes a socket at an address.
func listen(kind int, at netip.AddrPort) (int, error) {
	fd, err := unix.Socket(unix.AF_INET, kind|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return 0, err
	}
	err = unix.Bind(fd, &unix.SockaddrInet4{Port: int(at.Port()), Addr: at.Addr().As4()})
	if err == nil && kind == unix.SOCK_STREAM {
		err = unix.Listen(fd, 128)
	}
	if err != nil {
		unix.Close(fd)
		return 0, err
	}
	return fd, nil
}

// loopback starts the interface lo.
func loopback() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	lo.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo)
}

// loopbackIndex is the number of lo in every network.
const loopbackIndex = 1

// local makes the addresses of a prefix addresses of this machine, as
// "ip route add local PREFIX dev lo" does.
func local(p netip.Prefix) error {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	route := unix.RtMsg{
		Family: unix.AF_INET, Dst_len: uint8(p.Bits()), Table: unix.RT_TABLE_LOCAL,
		Protocol: unix.RTPROT_BOOT, Scope: unix.RT_SCOPE_HOST, Type: unix.RTN_LOCAL,
	}
	var body []byte
	body = append(body, unsafe.Slice((*byte)(unsafe.Pointer(&route)), unix.SizeofRtMsg)...)
	attribute := func(kind uint16, value []byte) {
		body = binary.NativeEndian.AppendUint16(body, uint16(unix.SizeofRtAttr+len(value)))
		body = binary.NativeEndian.AppendUint16(body, kind)
		body = append(body, value...)
	}
	address := p.Addr().As4()
	attribute(unix.RTA_DST, address[:])
	attribute(unix.RTA_OIF, binary.NativeEndian.AppendUint32(nil, loopbackIndex))

	var message []byte
	message = binary.NativeEndian.AppendUint32(message, uint32(unix.SizeofNlMsghdr+len(body)))
	message = binary.NativeEndian.AppendUint16(message, unix.RTM_NEWROUTE)
	message = binary.NativeEndian.AppendUint16(message, unix.NLM_F_REQUEST|unix.NLM_F_ACK|unix.NLM_F_CREATE|unix.NLM_F_EXCL)
	message = binary.NativeEndian.AppendUint32(message, 1) // sequence
	message = binary.NativeEndian.AppendUint32(message, 0) // to the kernel
	message = append(message, body...)
	if err := unix.Sendto(fd, message, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	answer := make([]byte, 4096)
	n, _, err := unix.Recvfrom(fd, answer, 0)
	if err != nil {
		return err
	}
	if n < unix.SizeofNlMsghdr+4 || binary.NativeEndian.Uint16(answer[4:]) != unix.NLMSG_ERROR {
		return errors.New("an odd answer of the kernel")
	}
	if code := int32(binary.NativeEndian.Uint32(answer[unix.SizeofNlMsghdr:])); code != 0 {
		return unix.Errno(-code)
	}
	return nil
}
