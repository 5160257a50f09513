package wording

import (
	"slices"
	"strings"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/canon"
)

// boxOf says what the system keeps the programs of the calls' servers to. Of several
// servers each is named, unless the same holds for all.
func boxOf(calls []approval.Item) string {
	var servers, boxes []string
	for _, i := range calls {
		if !slices.Contains(servers, i.Server) {
			servers, boxes = append(servers, i.Server), append(boxes, canon.Escape(i.About.Box))
		}
	}
	if len(boxes) == 0 || !slices.ContainsFunc(boxes, func(box string) bool { return box != boxes[0] }) {
		return strings.Join(boxes[:min(1, len(boxes))], "")
	}
	var all []string
	for n, box := range boxes {
		if box != "" {
			all = append(all, canon.Escape(servers[n])+" "+box)
		}
	}
	return strings.Join(all, "; ")
}
