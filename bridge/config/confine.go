package config

// A Confine is the box that the program of a stdio server runs in: what the system lets
// it do, whatever it tries.
type Confine struct {
	// Write are the folders and files that it may change, and Read those that it may
	// read besides what any program needs; absolute. [WorkspaceWord] stands for the
	// folders of the workspace.
	Write Folders `json:"write,omitempty" expand:"no"`
	Read  Folders `json:"read,omitempty" expand:"no"`
	// Net says which hosts it reaches.
	Net Net `json:"net,omitzero" expand:"no"`
	// Run are the programs that it may start besides itself; nil: any that it can read.
	Run Folders `json:"run,omitempty" expand:"no"`
	// Require refuses to start the server where the system can't enforce all of it.
	Require bool `json:"require,omitempty"`
}

// WorkspaceWord stands in a box for the folders of the workspace.
const WorkspaceWord = "workspace"

// A Net is "none", "any", or a list of hosts: "api.example.com", "*.example.com:8443".
// Without a port it is 443.
type Net struct {
	Any   bool
	Hosts []NetHost
}

// A NetHost is one host of a Net.
type NetHost struct {
	Name string
	Port uint16
}
