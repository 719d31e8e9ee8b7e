package scheduler

import "log/slog"

// State is where a runner is in its life.
type State int

// The states, in the order of a life.
const (
	Absent State = iota
	Loading
	Ready
	Draining // takes no new lease, has some
	Stopping // is told to end
	Gone
)

var stateNames = []string{"absent", "loading", "ready", "draining", "stopping", "gone"}

// String gives the name that /api/ps and the logs have.
func (s State) String() string { return stateNames[s] }

// Event is what happens to a runner.
type Event int

// The events.
const (
	Load      Event = iota // the policy wants it
	LoadDone               // its model is ready
	Failed                 // its model could not be loaded
	Evict                  // the policy, keep_alive, an unload or the shutdown wants it gone; or nobody waits for the load
	LastDone               // no lease is left
	GraceOver              // the shutdown waits no longer for leases
	Exited                 // its process has ended
)

var eventNames = []string{"load", "load-done", "failed", "evict", "last-done", "grace-over", "exited"}

// String gives the event's name.
func (e Event) String() string { return eventNames[e] }

// next lists every legal move. A pair that is missing is a bug, not a case.
var next = map[State]map[Event]State{
	Absent:   {Load: Loading},
	Loading:  {LoadDone: Ready, Failed: Stopping, Evict: Stopping},
	Ready:    {Evict: Draining, Exited: Gone},                         // new leases only here
	Draining: {LastDone: Stopping, GraceOver: Stopping, Exited: Gone}, // no way back to Ready: a late request can't revive it
	Stopping: {Exited: Gone},
	Gone:     {},
}

// onBug is told what cannot happen, such as a move that is not in the table. In production that is a line in the log; the tests
// make it a panic.
var onBug = func(err error) { slog.Error("a bug", "error", err) }
