package gateway

import (
	"fmt"
	"testing"
	"time"

	"sluice/store"
)

func TestPagesOfQuestions(t *testing.T) {
	f := taught(t, &scripted{answers: []string{"SELECT count(*) AS n FROM item"}})
	ann, _, _ := withFolk(t, f)
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for i := range 7 { // some at one time
		if err := f.people.store.InsertAsk(t.Context(), store.Ask{ID: fmt.Sprint("ask_", i), Owner: "ann", Database: "shop", Question: "q", Outcome: "failed", CreatedAt: at.Add(time.Duration(i/3) * time.Second)}); err != nil {
			t.Fatal(err)
		}
	}
	var ids []string
	for next, n := "", 0; n < 9; n++ {
		path := "/v1/learning/questions?limit=2"
		if next != "" {
			path += "&cursor=" + next
		}
		var page []m
		page, next = entries(t, f.get(path, ann))
		for _, e := range page {
			ids = append(ids, fmt.Sprint(e["id"]))
		}
		if next == "" {
			break
		}
	}
	if want := "[ask_6 ask_5 ask_4 ask_3 ask_2 ask_1 ask_0]"; fmt.Sprint(ids) != want {
		t.Errorf("%v, want %s", ids, want)
	}
}

func TestWithoutAKeeperOfQuestions(t *testing.T) {
	f := newFixture(t, nil)
	failure(t, f.get("/v1/learning/questions", adminKey), 501, "unimplemented")
	failure(t, f.get("/v1/learning/export", adminKey), 501, "unimplemented")
	failure(t, f.get("/v1/learning/questions", ""), 401, "unauthenticated")
}
