package lifecycle

import "fmt"

// A FolderError is a run whose servers ran in another folder than this bridge's,
// where the same command may be another server.
type FolderError struct {
	Run    string
	Folder string // as it is shown
}

func (e *FolderError) Error() string {
	return fmt.Sprintf("run %s began in %s, where its servers without a folder of their own (cwd) ran, and goes on only there: codemode-bridge runs resume %[1]s goes there", e.Run, e.Folder)
}
