package access

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"time"
)

// CopyRequestLife is for how long somebody may approve a copy request.
const CopyRequestLife = 24 * time.Hour

// CopyRequest is a COPY that an agent asked for and a person has to let run.
type CopyRequest struct {
	ID    string
	State CopyRequestState

	// What it is bound to: these never change, and Sum is over them.
	Statement string // the whole COPY
	Database  string
	Folder    Folder
	Sum       [32]byte // see CopyRequestSum

	// What an approver gets to see, besides: never rows.
	SQL     string // the query, as the gate let it through
	Columns []CopyRequestColumn

	Asker   CopyAsker
	KeyName string // of the asker's key; of a login the user's name
	Ask     string // id of the ask that it came from; "" when the statement was sent

	CreatedAt time.Time
	ExpiresAt time.Time

	DecidedBy   string // user who approved, denied or withdrew it; "" nobody yet
	DecidedWith string // id of his login or key
	DecidedAt   time.Time
	Reason      string // of a denial

	StartedAt time.Time
	EndedAt   time.Time
	RunID     string // of the lake's run, when there was one
	Kind      string // of the failure
	Error     string // for people
}

// CopyRequestColumn is a column of the query and where it goes.
type CopyRequestColumn struct {
	Name      string `json:"name"`
	Type      string `json:"type"` // in the file, "" for a partition column
	Partition bool   `json:"partition"`
}

// CopyAsker is who asked for a copy: what finds the principal again when somebody approves it.
type CopyAsker struct {
	Key   string // id of the key or login
	Owner string // the user for whom
	Login bool   // a person's login, with which the agent was asked
}

// CopyRequestState is where a copy request stands.
type CopyRequestState string

// The states. A request is pending until somebody decides or its time is over; approved and running are short; all others
// are ends.
const (
	CopyPending   CopyRequestState = "pending"
	CopyApproved  CopyRequestState = "approved"
	CopyDenied    CopyRequestState = "denied"
	CopyWithdrawn CopyRequestState = "withdrawn" // by who asked
	CopyExpired   CopyRequestState = "expired"
	CopyRunning   CopyRequestState = "running"
	CopyDone      CopyRequestState = "done"
	CopyFailed    CopyRequestState = "failed"
)

// CopyRequestStates lists all states.
func CopyRequestStates() []CopyRequestState {
	return []CopyRequestState{CopyPending, CopyApproved, CopyDenied, CopyWithdrawn, CopyExpired, CopyRunning, CopyDone, CopyFailed}
}

// At is the state at a time: a pending request whose time is over has expired, whether anybody wrote that down or not.
func (r CopyRequest) At(now time.Time) CopyRequestState {
	if r.State == CopyPending && (r.ExpiresAt.IsZero() || !now.Before(r.ExpiresAt)) {
		return CopyExpired
	}
	return r.State
}

// copyRequestLabel begins the bytes that are hashed, so that no other hash of Sluice's is taken for one.
const copyRequestLabel = "sluice/copy-request/1\n"

// CopyRequestSum is what a copy request is bound to: SHA-256 of the label "sluice/copy-request/1" and a line feed, then of
// statement, database and path, each as its length in bytes (4 bytes, big-endian) and its UTF-8. The path is the clean one;
// the connection is in the statement.
func CopyRequestSum(statement, database, path string) [32]byte {
	h := sha256.New()
	h.Write([]byte(copyRequestLabel))
	for _, text := range []string{statement, database, path} {
		var length [4]byte
		binary.BigEndian.PutUint32(length[:], uint32(len(text)))
		h.Write(length[:])
		h.Write([]byte(text))
	}
	return [32]byte(h.Sum(nil))
}

// Bound says whether a request still is what was asked for.
func (r CopyRequest) Bound() bool {
	return r.Sum == CopyRequestSum(r.Statement, r.Database, r.Folder.Path)
}

// MayAskForCopy says whether p may ask for a copy that a person then approves: all that COPY needs but freshness, and
// agents may. What an approved request does is never more than this. The error has code Denied and Kind "auth".
func MayAskForCopy(p Principal, database string, f Folder) error {
	p.Agent = false
	return StillMayCopy(p, database, f)
}

// MayApproveCopy says whether p may let the copy run that asker asked for: a person who logged in just now, with all that
// COPY needs; and with an agent_copy grant on the folder, when it is asked for in his own name. The asker must still have
// all that the copy needs too. The error has code Denied and Kind "auth".
func MayApproveCopy(p, asker Principal, database string, f Folder, at Moment) error {
	if !p.Login {
		return refuse("a copy that an agent asked for is approved by a person who logged in, not with a key")
	}
	may := MayCopy
	if standsBehind(asker, p.Owner) {
		may = MayAgentCopy
	}
	if err := may(p, database, f, at); err != nil {
		return err
	}
	if MayAskForCopy(asker, database, f) != nil {
		return refuse("who asked for this copy has not the rights for it any more")
	}
	return nil
}

// standsBehind says whether a user is one of those whose rights a principal has: a key that acts for somebody could
// otherwise ask in another's name for what its owner then approves.
func standsBehind(p Principal, user string) bool {
	return user == "" || p.Owner == user || slices.ContainsFunc(p.Holders, func(h Holder) bool { return h.User == user })
}

// MayDenyCopy says whether p may deny a request that it sees: an admin, or who could approve it with a fresh password.
// Saying no needs neither login nor password, but never comes from an agent. The error has code Denied and Kind "auth".
func MayDenyCopy(p Principal, r CopyRequest) error {
	if p.Agent {
		return refuse("copy requests are denied by people, not by agents")
	}
	if ownsCopyRequest(p, r) || wholeAdmin(p) || StillMayCopy(p, r.Database, r.Folder) == nil {
		return nil
	}
	return refuse("who may not copy to the folder may not deny this either")
}

// MayWithdrawCopy says whether p asked for the copy, or is the person in whose name it was asked for. The error has code
// Denied and Kind "auth".
func MayWithdrawCopy(p Principal, r CopyRequest) error {
	if !ownsCopyRequest(p, r) {
		return refuse("only who asked for a copy withdraws it; others deny it")
	}
	return nil
}

// MaySeeCopyRequest says whether p may know of a request: who asked, the person in whose name, admins, and who could
// approve it. For all others there is none.
func MaySeeCopyRequest(p Principal, r CopyRequest) bool {
	if !p.Known() {
		return false
	}
	if ownsCopyRequest(p, r) {
		return true
	}
	return !p.Agent && (wholeAdmin(p) || StillMayCopy(p, r.Database, r.Folder) == nil)
}

// ownsCopyRequest: a narrowed key, an agent's, or one that acts for others may be in other hands than its owner's, so it has
// only its own requests, and of those for several users each only theirs.
func ownsCopyRequest(p Principal, r CopyRequest) bool {
	if !p.Known() || p.Owner == "" || p.Owner != r.Asker.Owner {
		return false
	}
	return p.KeyID == r.Asker.Key || !p.Agent && !p.Narrowed()
}

func wholeAdmin(p Principal) bool {
	return p.Ceiling() == Admin && !p.Agent && !p.Narrowed()
}
