package gateway

import (
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gin-gonic/gin"
)

func TestALongAskSaysThatItIsAtWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := httptest.NewRecorder()
		c, _ := gin.CreateTestContext(w)
		a := newAskStream(sseStream{c: c})
		written := func() string {
			a.mu.Lock()
			defer a.mu.Unlock()
			return w.Body.String()
		}
		time.Sleep(3 * silence) // nothing is out: an error may still be a status
		synctest.Wait()
		if got := written(); got != "" || a.started() {
			t.Errorf("before the first event: %q", got)
		}
		send := func(name string) {
			if err := a.send(name, 1); err != nil {
				t.Error(err)
			}
		}
		send("schema")
		time.Sleep(silence - time.Second)
		send("candidate") // the silence begins anew
		time.Sleep(silence - time.Second)
		synctest.Wait()
		const first = "event: schema\ndata: 1\n\nevent: candidate\ndata: 1\n\n"
		if got := written(); got != first {
			t.Errorf("%q", got)
		}
		time.Sleep(silence + time.Second)
		synctest.Wait()
		const comment = ": still at it\n\n"
		if got := written(); got != first+comment+comment {
			t.Errorf("%q", got)
		}
		send("done")
		a.end()
		time.Sleep(3 * silence)
		if got := written(); got != first+comment+comment+"event: done\ndata: 1\n\n" {
			t.Errorf("%q", got)
		}
	})
}
