package confine

import "golang.org/x/sys/unix"

// legacyCalls are watched calls that newer architectures do not have.
var legacyCalls = []watchedCall{
	{unix.SYS_OPEN, func(n *notice) []Use { return n.opens(n.path(here, 0), n.args[1]) }},
	{unix.SYS_CREAT, func(n *notice) []Use { return n.opens(n.path(here, 0), unix.O_WRONLY|unix.O_CREAT) }},
	{unix.SYS_CHMOD, func(n *notice) []Use { return n.writes(n.path(here, 0)) }},
	{unix.SYS_CHOWN, func(n *notice) []Use { return n.writes(n.path(here, 0)) }},
	{unix.SYS_UTIME, func(n *notice) []Use { return n.writes(n.path(here, 0)) }},
	{unix.SYS_UTIMES, func(n *notice) []Use { return n.writes(n.path(here, 0)) }},
	{unix.SYS_MKDIR, func(n *notice) []Use { return n.places(n.path(here, 0)) }},
	{unix.SYS_MKNOD, func(n *notice) []Use { return n.places(n.path(here, 0)) }},
	{unix.SYS_RMDIR, func(n *notice) []Use { return n.places(n.path(here, 0)) }},
	{unix.SYS_UNLINK, func(n *notice) []Use { return n.places(n.path(here, 0)) }},
	{unix.SYS_SYMLINK, func(n *notice) []Use { return n.places(n.path(here, 1)) }},
	{unix.SYS_RENAME, func(n *notice) []Use { return n.places(n.path(here, 0), n.path(here, 1)) }},
	{unix.SYS_LINK, func(n *notice) []Use { return n.places(n.path(here, 0), n.path(here, 1)) }},
}
