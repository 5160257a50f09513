package confine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// settings is what programs look up below /etc: how to find libraries, names, the time,
// certificates and fonts. The rest of /etc, such as /etc/shadow and the keys of the
// machine, a box does not have.
var settings = []string{
	"alternatives", "ca-certificates", "ca-certificates.conf", "chromium", "chromium.d", "fonts", "gai.conf", "group", "host.conf", "hosts",
	"java", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "locale.alias", "locale.conf", "localtime", "login.defs",
	"magic", "mailcap", "mime.types", "nsswitch.conf", "os-release", "passwd", "pki/ca-trust", "pki/java",
	"pki/tls/cert.pem", "pki/tls/certs", "pki/tls/openssl.cnf", "protocols", "python3", "services", "ssl/cert.pem", "ssl/certs", "ssl/openssl.cnf", "terminfo", "timezone",
}

// devices of a box.
var devices = []string{"null", "zero", "full", "random", "urandom"}

// scratch is where a program may write what is gone when it ends.
var scratch = []string{"/tmp", "/dev/shm"}

// The most that a program may keep in memory as files of such a folder.
const scratchSize = "size=512m"

// A root is the file system of a box, while it is made.
type root struct {
	at string // where it is mounted now
}

// newRoot replaces the file system of this process, which must have a mount namespace of
// its own, by one that holds what the box names.
func newRoot(o order) error {
	// What happens to mounts here must not reach the machine's.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		return fmt.Errorf("leaving the machine's mounts: %w", err)
	}
	// Two folders, of which one becomes the root of the box and the other holds the
	// machine's until all that is needed of it is mounted.
	const stage = "/tmp"
	if err := unix.Mount("codemode", stage, "tmpfs", unix.MS_NODEV|unix.MS_NOSUID, "mode=0755"); err != nil {
		return fmt.Errorf("making a root: %w", err)
	}
	if err := os.Chdir(stage); err != nil {
		return err
	}
	for _, name := range []string{"new", "old"} {
		if err := os.Mkdir(name, 0o755); err != nil {
			return err
		}
	}
	if err := unix.Mount("codemode", "new", "tmpfs", unix.MS_NODEV|unix.MS_NOSUID, "mode=0755,"+scratchSize); err != nil {
		return fmt.Errorf("making a root: %w", err)
	}
	if err := unix.PivotRoot(stage, "old"); err != nil {
		return fmt.Errorf("changing the root: %w", err)
	}
	if err := os.Chdir("/"); err != nil {
		return err
	}
	r := root{at: "/new"}
	if err := r.fill(o); err != nil {
		return err
	}
	if err := unix.Unmount("/old", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("leaving the machine's files: %w", err)
	}
	// The stage, too, is left behind.
	if err := os.Chdir(r.at); err != nil {
		return err
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("changing the root: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("leaving the stage: %w", err)
	}
	return os.Chdir("/")
}

// fill mounts what the box has, what is above before what is below.
func (r root) fill(o order) error {
	for _, path := range systemFolders {
		if err := r.have(path, false); err != nil {
			return err
		}
	}
	for _, name := range settings {
		if err := r.have(filepath.Join("/etc", name), false); err != nil {
			return err
		}
	}
	for _, folder := range append(slices.Clone(scratch), "/run", "/var/tmp", "/proc") {
		if err := r.folder(folder); err != nil {
			return err
		}
	}
	for _, folder := range scratch {
		if err := unix.Mount("codemode", r.at+folder, "tmpfs", unix.MS_NODEV|unix.MS_NOSUID, "mode=1777,"+scratchSize); err != nil {
			return fmt.Errorf("making %s: %w", folder, err)
		}
	}
	if err := r.folder(o.Home); err != nil {
		return err
	}
	for _, name := range devices {
		if err := r.have("/dev/"+name, true); err != nil {
			return err
		}
	}
	for name, target := range map[string]string{"fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2"} {
		if err := os.Symlink(target, r.at+"/dev/"+name); err != nil {
			return err
		}
	}
	if err := r.link(o.Links); err != nil {
		return err
	}
	for _, p := range o.Places {
		if err := r.mount(p); err != nil {
			return changed(err)
		}
	}
	if o.Box.Net.Any {
		if err := r.have("/etc/resolv.conf", false); err != nil {
			return err
		}
	} else if err := r.resolver(); err != nil {
		return err
	}
	if err := r.processes(o); err != nil {
		return err
	}
	return changed(r.folder(o.Dir))
}

// A changedError says that the files of the box are not what they were when the launcher was
// asked for it. A server may have done that, in a folder that it may write, and another box
// would not be the better for it.
type changedError struct{ error }

func changed(err error) error {
	for _, errno := range []error{unix.ENOENT, unix.ENOTDIR, unix.ELOOP} {
		if errors.Is(err, errno) {
			return &changedError{err}
		}
	}
	return err
}

// have brings a path of the machine into the box, to read, with all below it. A link on its
// way is a link in the box, too, and what it leads to comes along. What the machine does not
// have, the box does not have.
func (r root) have(path string, write bool) error {
	to, links, err := r.follow(path)
	if err != nil {
		return fmt.Errorf("following %s: %w", path, err)
	}
	if err := r.link(links); err != nil {
		return err
	}
	if err := r.mount(place{to, write}); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// follow is follow below the machine's root, which is beside the new one by now.
func (r root) follow(path string) (string, []link, error) { return follow("/old", path) }

func (r root) link(links []link) error {
	for _, l := range links {
		if err := r.folder(filepath.Dir(l.At)); err != nil {
			return err
		}
		if err := os.Symlink(l.Target, r.at+l.At); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return nil
}

// mount brings a place of the machine into the box, with all below it. No link is
// followed: a place that has become one since it was looked at is refused.
func (r root) mount(p place) error {
	old, err := unix.Open("/old", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(old)
	fd, err := unix.Openat2(old, p.Path, &unix.OpenHow{
		Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_SYMLINKS,
	})
	if err != nil {
		return fmt.Errorf("opening %s: %w", p.Path, err)
	}
	defer unix.Close(fd)
	var what unix.Stat_t
	if err := unix.Fstat(fd, &what); err != nil {
		return fmt.Errorf("looking at %s: %w", p.Path, err)
	}
	at, err := r.target(p.Path, what.Mode&unix.S_IFMT == unix.S_IFDIR)
	if err != nil {
		return fmt.Errorf("making a place for %s: %w", p.Path, err)
	}
	defer unix.Close(at)
	tree, err := unix.OpenTree(fd, "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE|unix.AT_EMPTY_PATH)
	if err != nil {
		return fmt.Errorf("having %s: %w", p.Path, err)
	}
	defer unix.Close(tree)
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NOSUID}
	if !strings.HasPrefix(p.Path, "/dev/") {
		attr.Attr_set |= unix.MOUNT_ATTR_NODEV
	}
	if !p.Write {
		attr.Attr_set |= unix.MOUNT_ATTR_RDONLY
	}
	if err := unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &attr); err != nil {
		return fmt.Errorf("having %s as it should be: %w", p.Path, err)
	}
	if err := unix.MoveMount(tree, "", at, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH); err != nil {
		return fmt.Errorf("having %s: %w", p.Path, err)
	}
	return nil
}

// folder makes a folder of the box.
func (r root) folder(path string) error {
	if path == "" {
		return nil
	}
	fd, err := r.make(path, unix.RESOLVE_IN_ROOT)
	if err != nil {
		return fmt.Errorf("making %s: %w", path, err)
	}
	return unix.Close(fd)
}

// target opens a path of the box to mount something on, which is made if it is missing.
func (r root) target(path string, folder bool) (fd int, err error) {
	const how = unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_SYMLINKS
	if folder {
		return r.make(path, how)
	}
	above, err := r.make(filepath.Dir(path), how)
	if err != nil {
		return -1, err
	}
	defer unix.Close(above)
	here := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS}
	if fd, err = unix.Openat2(above, filepath.Base(path), &here); !errors.Is(err, unix.ENOENT) {
		return fd, err
	}
	f, err := unix.Openat(above, filepath.Base(path), unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0o644)
	if err != nil {
		return -1, err
	}
	unix.Close(f)
	return unix.Openat2(above, filepath.Base(path), &here)
}

// make opens a folder of the box, which is made with those above it if it is missing. What
// is already mounted there may change meanwhile, and be full of links: nothing is made
// beside the box, where the machine's files still are.
func (r root) make(path string, resolve uint64) (fd int, err error) {
	box, err := unix.Open(r.at, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	defer unix.Close(box)
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: resolve}
	path = filepath.Clean("/" + path)
	if fd, err = unix.Openat2(box, path, &how); !errors.Is(err, unix.ENOENT) || path == "/" {
		return fd, err
	}
	above, err := r.make(filepath.Dir(path), resolve)
	if err != nil {
		return -1, err
	}
	defer unix.Close(above)
	if err := unix.Mkdirat(above, filepath.Base(path), 0o755); err != nil && !errors.Is(err, unix.EEXIST) {
		return -1, err
	}
	return unix.Openat2(box, path, &how)
}

// resolver sends questions about names to the bridge. The text is mounted, since the folder
// may be the machine's.
func (r root) resolver() error {
	const text = "/resolv.conf" // on the stage
	if err := os.WriteFile(text, []byte(resolving), 0o644); err != nil {
		return err
	}
	to, _, err := follow(r.at, "/etc/resolv.conf")
	if err != nil {
		return fmt.Errorf("following /etc/resolv.conf: %w", err)
	}
	at, err := r.target(to, false)
	if err != nil {
		return fmt.Errorf("making a place for %s: %w", to, err)
	}
	defer unix.Close(at)
	tree, err := unix.OpenTree(unix.AT_FDCWD, text, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return fmt.Errorf("having %s: %w", to, err)
	}
	defer unix.Close(tree)
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV | unix.MOUNT_ATTR_RDONLY}
	err = unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH, &attr)
	if err == nil {
		err = unix.MoveMount(tree, "", at, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
	}
	if err != nil {
		return fmt.Errorf("having %s: %w", to, err)
	}
	return nil
}

// resolving is the text of a resolv.conf by which a program asks the bridge.
const resolving = "nameserver 127.0.0.1\noptions timeout:10 attempts:2\n"

// processes shows the box its own processes, and the machine's settings as they are: root
// could change them without any capability.
func (r root) processes(o order) error {
	const flags = unix.MS_NODEV | unix.MS_NOSUID | unix.MS_NOEXEC
	if err := unix.Mount("proc", r.at+"/proc", "proc", flags, ""); err != nil {
		return fmt.Errorf("showing its own processes: %w", err)
	}
	if err := o.fewProcesses(r.at + "/proc"); err != nil {
		return err
	}
	if err := unix.Mount("", r.at+"/proc", "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY|flags, ""); err != nil {
		return fmt.Errorf("keeping the machine's settings: %w", err)
	}
	return nil
}

// onlyProcesses is what newRoot does for processes alone.
func onlyProcesses(o order) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		return fmt.Errorf("leaving the machine's mounts: %w", err)
	}
	return root{}.processes(o)
}
