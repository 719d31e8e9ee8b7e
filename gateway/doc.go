// Package gateway is the HTTP surface: it finds out who is calling, hands the request to the room that can answer it,
// and writes the answer in the caller's dialect. It decides nothing about models, SQL or lakes itself.
//
// It owns little state, the counters of failed logins and the list of statements that run: every request is handled in its
// own goroutine, and what else must be shared belongs to the rooms in [Config]. A lease on a model is taken and given back
// within one handler; the request's context, which ends when the client leaves, cancels everything that the handler started.
//
//	its configuration, its start                gateway.go
//	which routes there are, who may call them   routes.go     one table, walked by the tests
//	a route of API.md that is not here yet      absent.go
//	who is calling, what "open" means           auth.go
//	Host, Origin and CORS                       hosts.go
//	request ids, access log, panics, sizes      middleware.go
//	an error's status and its body              errors.go     one map, one writer for each dialect
//	reading a request body                      body.go
//	Ollama's values that need care              wire.go       keep_alive, counters
//	NDJSON, how long a client may not read      stream.go
//	server-sent events                          sse.go
//	limit and cursor of lists                   list.go
//	tags, show, version                         catalogue.go
//	ps: what is loaded, and where               ps.go
//	create, copy, delete, blobs                 manage.go
//	pull, push, their progress                  transfer.go
//
// Every API's conversations and texts meet in one core, in no API's dialect:
//
//	the types: dialog, textRequest, turn        dialog.go
//	answering a conversation                    converse.go
//	going on from a text                        text.go
//	a runner's chunks become turns              answering.go
//	what a model cannot do, think, format       capability.go
//	tools: none, any, a required one            toolchoice.go, toolschema.go (the schema of a required call)
//	what is left out when it is too long        truncate.go
//	finding a model, a lease on it              completion.go
//	models of servers elsewhere, circles        elsewhere.go
//	how prompts begin, for the scheduler        prefix.go
//	vectors                                     embed.go
//	tokens                                      tokenize.go
//
// and each API reads its requests and writes its turns:
//
//	Ollama's chat and generate                  chat.go, generate.go, infer.go (what they do alike)
//	OpenAI's                                    openai*.go, responses*.go
//	Anthropic's                                 anthropic*.go
//	reranking                                   rerank.go
//	/metrics                                    metrics.go, metrics_scheduler.go (what is loaded, devices)
//
//	databases, schemas                          databases.go
//	/v1/query/execute                           query.go, result.go (JSON), render.go (CSV, NDJSON, Arrow)
//	changes of rows and tables                  write.go
//	what runs now, cancelling it                queries.go
//	/v1/database/ask and its events             ask.go, ask_stream.go (silence), ask_chart.go (what may be drawn)
//	a database as a model, ask/<database>       askmodel.go (who sees it), askmodel_chat.go (the question), askmodel_side.go
//	                                            (what chat programs ask beside), askmodel_markdown.go (the answer)
//	COPY, external tables, runs, connections    lake.go
//	what agents ask to have copied              copy_requests.go (lists), copy_requests_make.go, copy_requests_run.go (decisions)
//	the Learning Loop: who sees what, lists     learning.go, learning_questions.go (marks), learning_verified.go
//	verified questions as a file, and from one  learning_file.go, learning_import.go
//	collections of documents, searching them    collections.go, collections_documents.go, collections_openapi.go
//	users; the interface to who is known        accounts.go
//	login, reauth, logout, /v1/auth/me          login.go, login_attempts.go (guessing)
//	keys                                        keys.go, life.go (how long they live)
//	grants                                      grants.go
//	the audit ledger: what is put into it       audit.go, audit_ask.go (the statements of an ask); manage.go and others call it
//	/v1/audit                                   audit_routes.go
//	/v1/openapi.json: what routes take and give openapi*.go   operations() is the table
package gateway
