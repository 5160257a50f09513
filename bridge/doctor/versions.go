package doctor

import "context"

// versions compares this program with the worker and the bridges that run.
func (up *Checkup) versions(ctx context.Context) []Finding {
	if up.Builds == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, up.Limit)
	defer cancel()
	others := up.Builds(ctx)
	if len(others) == 0 {
		return []Finding{fine("", up.Version+": this program, the worker and the bridges that run")}
	}
	var all []Finding
	for _, p := range others {
		all = append(all, warning(p.About, p.Text, p.Do))
	}
	return all
}
