package agent

import (
	"sluice/access"
	"sluice/sqlguard"
)

// ProfileOf is the gate's profile for statements that read in somebody's name, whoever wrote them. It is NoProfile, which
// lets nothing through, for who may not read.
func ProfileOf(who access.Principal) sqlguard.Profile {
	switch access.ReadingOf(who) {
	case access.RestrictedReading:
		return sqlguard.RestrictedRead
	case access.FullReading:
		return sqlguard.ReadOnly
	}
	return sqlguard.NoProfile
}
