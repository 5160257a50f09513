package confine

// mostProcesses bounds the processes of a box, on Linux with their threads. A browser has
// some hundred.
const mostProcesses = 4096

// mostMemory bounds the memory of a box where the system bounds it, on Linux with its
// temporary files. A server in Node ends by itself at about as much, a browser with some
// pages takes half.
const mostMemory = 4 << 30
