//go:build unix

package sqlstore

func init() {
	parts["full"] = func(args []string) error { return fullDisk(args[0]) }
	parts["forbidden"] = func(args []string) error { return forbidden(args[0]) }
}
