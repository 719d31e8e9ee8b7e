// Package collection keeps documents and finds the passages that say most about a question.
//
// A [Service] is collections with rights; below it is a [Store], of which there are two: [Embedded], a DuckDB file of this server's
// own, and [Postgres], with pgvector. Both pass the same tests. A document is cut into chunks, each with a vector of the model
// that an [Embedder] asks, and with its terms; a search asks for both and joins the two lists by rank.
//
// Rights are checked in the Service, at every call, against the collections as they are now. A collection that one may not read
// is the same as one that is not there.
//
// What documents say is data: it is bound as arguments, given back as text, and decides about nothing.
//
// Vectors of two models, or two versions of one, are never compared: each belongs to a [Space]. A collection has an active
// space, which is searched, and after a change of the model a next one, which [Service.Run] fills, the goroutine that owns
// that work. Its state is in the store, so that a killed server goes on where it was.
//
//	what is stored, what a store does      types.go
//	making, listing, deleting collections  service.go
//	who may what                           rights.go
//	adding documents                       documents.go
//	bounds, names                          limits.go, metadata.go
//	cutting: into blocks, into chunks      markdown.go, chunk.go
//	terms for the search by words          words.go
//	searching, joining by rank             search.go
//	vectors; another model                 embed.go, reembed.go
//	the embedded store                     embedded*.go
//	PostgreSQL: connections, schema        postgres.go, postgres_schema.go
//	PostgreSQL: documents, HNSW, spaces    postgres_documents.go, postgres_search.go, postgres_spaces.go
package collection
