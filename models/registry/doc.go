// Package registry gets models from registries and puts them there, by the protocol of OCI registries as Ollama uses it.
//
// A pull gets the manifest, then each blob in parts, several at a time, into a file beside the store's blobs. A journal beside that
// file says which bytes are durably there and what their SHA-256 is, so that whatever ends a pull (a cut, a cancel, a kill)
// costs the bytes since the last note, and a damaged byte costs its part. Only when every blob has its digest does the store get them,
// and the manifest last. A [Client] shares the work: a blob is fetched once for all the pulls that want it.
//
// A registry is a stranger, although an allowed one: its sizes, redirects, token servers and bytes are checked. Credentials go to
// the registry itself, and nowhere else unless the place is an allowed registry too.
//
//	settings, which hosts               registry.go
//	getting a model                     pull.go
//	sharing one blob between pulls      flight.go
//	a blob in parts, and resuming       download.go, one part: part.go
//	what is durably there               journal.go
//	digests, and mending what is wrong  verify.go
//	putting a model                     push.go, one blob: upload.go
//	requests, redirects, errors         client.go
//	tokens and passwords                auth.go
//	which addresses may be dialled      dial.go
//	when to try again                   retry.go
package registry
