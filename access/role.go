package access

import "sluice/fault"

// Role is the ceiling of what a principal may ever do. The zero value may do nothing.
type Role int

// The roles, in rising order.
const (
	NoRole Role = iota
	Restricted
	ReadOnly
	ReadWrite
	Admin
)

var roleNames = map[Role]string{Restricted: "restricted", ReadOnly: "read_only", ReadWrite: "read_write", Admin: "admin"}

// ParseRole reads a role's name as the contract spells it. Anything else is an Invalid error and NoRole.
func ParseRole(name string) (Role, error) {
	for role, known := range roleNames {
		if known == name {
			return role, nil
		}
	}
	return NoRole, fault.New(fault.Invalid, "access.ParseRole", "unknown role %q; the roles are restricted, read_only, read_write and admin", name)
}

// String gives the name that ParseRole reads, or "none".
func (r Role) String() string {
	if name, ok := roleNames[r]; ok {
		return name
	}
	return "none"
}

// AtLeast says whether r is a known role that reaches up to the known role floor. An unknown role on either side
// (the zero value, or a number beyond Admin) is refused, so a damaged record never counts as an admin.
func (r Role) AtLeast(floor Role) bool {
	_, known := roleNames[r]
	_, asked := roleNames[floor]
	return known && asked && r >= floor
}
