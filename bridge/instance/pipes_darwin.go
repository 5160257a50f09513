package instance

// pipeRoom is how much a pipe takes without blocking once poll says that it takes
// something: PIPE_BUF.
const pipeRoom = 512

// closeOnExec keeps what is received from children from the beginning, where the system can.
const closeOnExec = 0

// roomIn returns how much a pipe that takes something takes without blocking.
func roomIn(int) int { return pipeRoom }
