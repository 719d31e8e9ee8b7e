// Package gateway is the HTTP surface: it finds out who is calling, hands the request to the room that can answer it,
// and writes the answer in the caller's dialect. It decides nothing about models, SQL or lakes itself.
//
// It owns no state: every request is handled in its own goroutine, and what must be shared belongs to the rooms in
// [Config]. A lease on a model is taken and given back within one handler; the request's context, which ends when the
// client leaves, cancels everything that the handler started.
//
//	which routes there are, who may call them   routes.go     one table, walked by the tests
//	a route of API.md that is not here yet      absent.go
//	who is calling, what "open" means           auth.go
//	Host, Origin and CORS                       hosts.go
//	request ids, access log, panics, sizes      middleware.go
//	an error's status and its body              errors.go     one map, one writer for each dialect
//	reading a request body                      body.go
//	Ollama's values that need care              wire.go       keep_alive, format, think, counters
//	NDJSON, how long a client may not read      stream.go
//	limit and cursor of lists                   list.go
//	tags, show, ps, version                     catalogue.go
//	create, copy, delete, blobs                 manage.go
//	what chat and generate do alike             infer.go
//	chat, generate: where they differ           chat.go, generate.go
//	what is cut when it is too long             truncate.go
//	a lease and one completion on it            completion.go
//	embed, embeddings                           embed.go
//	databases, schemas                          databases.go
//	/v1/query/execute                           query.go, result.go (JSON), render.go (CSV, NDJSON, Arrow)
//	/v1/database/ask and its events             ask.go
//	COPY, external tables, runs, connections    lake.go
//	keys, /v1/auth/me                           keys.go
package gateway
