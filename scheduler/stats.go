package scheduler

// stats counts what there is.
func (l *loop) stats() Stats { return Stats{Waiting: len(l.queue)} }
