package sandbox

func workerMain() {}
