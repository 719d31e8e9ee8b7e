package gateway

import (
	"hash/maphash"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/gin-gonic/gin"

	"sluice/fault"
)

// Limits of attempts to log in, failed or under way. They hold for names that nobody has too, or they would tell which exist.
const (
	attemptWindow  = 15 * time.Minute
	attemptsOfUser = 10 // with a name in a window
	attemptsFrom   = 50 // from an address in a window
)

// attempts counts failed logins by user and by address. It has a fixed number of counters, chosen by a hash that strangers
// cannot foresee, so it neither grows nor can be made to forget. Two names on one counter are rare and lock each other out.
type attempts struct {
	mu          sync.Mutex
	seed        maphash.Seed
	users, from [1 << 13]counter
}

type counter struct {
	n     int
	since time.Time
}

func newAttempts() *attempts { return &attempts{seed: maphash.MakeSeed()} }

// begin counts an attempt, before it is known to fail: many at once must not get past the limit. wait is how long to wait
// first, 0 when the attempt may go on.
func (a *attempts) begin(user, address string, now time.Time) (wait time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	u, f := a.of(user, address, now)
	if u.n >= attemptsOfUser {
		wait = u.since.Add(attemptWindow).Sub(now)
	}
	if f.n >= attemptsFrom {
		wait = max(wait, f.since.Add(attemptWindow).Sub(now))
	}
	if wait > 0 {
		return wait
	}
	u.n++
	f.n++
	return 0
}

// succeeded forgets the failures of a user; who knows the password is not guessing. Those of the address stay, as its owner could
// otherwise guess others' passwords between logins of his own.
func (a *attempts) succeeded(user, address string, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	u, f := a.of(user, address, now)
	u.n = 0
	f.n = max(0, f.n-1)
}

// excused takes back an attempt that found out nothing, as when the caller left.
func (a *attempts) excused(user, address string, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	u, f := a.of(user, address, now)
	u.n, f.n = max(0, u.n-1), max(0, f.n-1)
}

func (a *attempts) of(user, address string, now time.Time) (u, f *counter) {
	u = &a.users[maphash.String(a.seed, user)%uint64(len(a.users))]
	f = &a.from[maphash.String(a.seed, address)%uint64(len(a.from))]
	for _, c := range []*counter{u, f} {
		if age := now.Sub(c.since); age < 0 || age >= attemptWindow {
			*c = counter{since: now}
		}
	}
	return u, f
}

// attempt has a password tried, unless there were too many wrong ones.
func (s *server) attempt(c *gin.Context, user string, try func() error) error {
	user, address := strings.ToLower(user), addressOf(c)
	if wait := s.attempts.begin(user, address, s.now()); wait > 0 {
		return &fault.Error{Code: fault.Busy, Op: "gateway.attempt", Msg: "there were too many failed logins with this user or from this address", RetryAfter: wait,
			Hint: "wait " + wait.Round(time.Second).String() + "; API keys work meanwhile"}
	}
	err := try()
	switch fault.CodeOf(err) {
	case fault.Unauthenticated, fault.Denied:
	case fault.Canceled:
		// The caller may have left because it took long: it counts as tried.
	default:
		if err != nil {
			s.attempts.excused(user, address, s.now())
		}
	}
	if err == nil {
		s.attempts.succeeded(user, address, s.now())
	}
	return err
}

// addressOf is where a request comes from, as far as its connection tells: headers say what their sender wants. Of an IPv6
// address it is the network, as one person has them all.
func addressOf(c *gin.Context) string {
	port, err := netip.ParseAddrPort(c.Request.RemoteAddr)
	if err != nil {
		return "unknown"
	}
	addr := port.Addr().Unmap()
	if addr.Is6() {
		network, _ := addr.WithZone("").Prefix(64) // 64 is in the range of an IPv6 address
		return network.String()
	}
	return addr.String()
}
