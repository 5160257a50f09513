// Package deploy holds examples of how codemode-bridge is run: units of systemd, a compose
// file, manifests of Kubernetes, configurations of load balancers. It has no code; its tests
// read the examples strictly, and compare what they say of each other.
package deploy
