// Package deploy holds examples of how codemode-bridge is run: units of systemd, a compose
// file, manifests of Kubernetes, a collector's configuration, those of load balancers. It has no
// code; its tests read what is YAML strictly, and compare what the examples say of each other.
// systemd, Prometheus, HAProxy and nginx read the others in the real tests.
package deploy
