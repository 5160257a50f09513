package tap

import "io"

// tryWrite writes nothing: there is no write that does not wait.
func tryWrite(io.Writer, []byte) int { return 0 }
