package fault

// Code says what the caller can do about an error. The zero value is Internal, so an error nobody classified tells
// a stranger nothing.
type Code int

// The codes. Their wire names and statuses are the contract of the REST routes.
const (
	Internal        Code = iota // a fault of ours; the text stays inside the process
	Invalid                     // the request is malformed: change it
	Unauthenticated             // no credential, or a wrong one
	Denied                      // the credential does not carry the right
	NotFound                    // no such thing, or none that the caller may see
	Conflict                    // the state of the thing forbids it now
	TooLarge                    // over a limit: ask for less
	Refused                     // the gate does not let this statement through
	Busy                        // try again later, see Error.RetryAfter
	Canceled                    // the caller left or cancelled
	Unimplemented               // not in this version
)

var names = map[Code]string{
	Internal: "internal", Invalid: "invalid", Unauthenticated: "unauthenticated", Denied: "denied", NotFound: "not_found",
	Conflict: "conflict", TooLarge: "too_large", Refused: "refused", Busy: "busy", Canceled: "canceled",
	Unimplemented: "unimplemented",
}

// String gives the code's name on the wire, such as "not_found".
func (c Code) String() string {
	if s, ok := names[c]; ok {
		return s
	}
	return names[Internal]
}

// Codes lists every code, so that a test can walk them all.
func Codes() []Code {
	out := make([]Code, 0, len(names))
	for c := Internal; c <= Unimplemented; c++ {
		out = append(out, c)
	}
	return out
}
