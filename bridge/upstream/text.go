package upstream

const maxName = 200

func visible(s string, n int) string { return s }
