package gateway

import (
	"strconv"

	"github.com/gin-gonic/gin"

	"sluice/fault"
)

// maxList is the longest list that can be asked for. Without a limit all is listed, but for runs.
const maxList = 1000

// list makes the handler of a list: get gives its entries, and need not give more than limit, which is 0 when the caller
// set none.
func list[T any](s *server, get func(c *gin.Context, limit int) ([]T, error)) gin.HandlerFunc {
	return func(c *gin.Context) {
		limit, err := limitOf(c)
		var all []T
		if err == nil {
			all, err = get(c, limit)
		}
		if err != nil {
			s.fail(c, err)
			return
		}
		if all == nil {
			all = []T{} // never null: clients iterate over it
		}
		if limit > 0 && len(all) > limit {
			all = all[:limit]
		}
		reply(c, all)
	}
}

// limitOf reads how many entries a caller wants; 0 when they do not say. A cursor is refused: with it ignored, a client
// would read the first page for ever.
func limitOf(c *gin.Context) (int, error) {
	const op = "gateway.list"
	if c.Request.URL.Query().Has("cursor") {
		return 0, &fault.Error{Code: fault.Unimplemented, Op: op, Msg: "lists have no pages in this version of Sluice", Hint: "leave cursor out"}
	}
	text, given := c.GetQuery("limit")
	if !given {
		return 0, nil
	}
	limit, err := strconv.Atoi(text)
	if err != nil || limit < 1 || limit > maxList {
		return 0, fault.New(fault.Invalid, op, "limit must be a number from 1 to %d", maxList)
	}
	return limit, nil
}
