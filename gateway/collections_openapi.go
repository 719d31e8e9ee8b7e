package gateway

import "github.com/google/jsonschema-go/jsonschema"

// collectionRoutes are those of collections of documents.
func (s *server) collectionRoutes() []route {
	return []route{
		{method: "GET", path: "/v1/rag/collections", class: member, handle: list(s, s.listCollections)},
		{method: "POST", path: "/v1/rag/collections", class: member, handle: s.createCollection},
		{method: "GET", path: "/v1/rag/collections/:name", class: member, handle: s.getCollection},
		{method: "DELETE", path: "/v1/rag/collections/:name", class: member, handle: s.deleteCollection},
		{method: "GET", path: "/v1/rag/collections/:name/documents", class: member, handle: s.listDocuments},
		{method: "POST", path: "/v1/rag/collections/:name/documents", class: member, handle: s.addDocument},
		{method: "GET", path: "/v1/rag/collections/:name/documents/:id", class: member, handle: s.getDocument},
		{method: "DELETE", path: "/v1/rag/collections/:name/documents/:id", class: member, handle: s.deleteDocument},
		{method: "POST", path: "/v1/rag/search", class: member, handle: s.searchPassages},
	}
}

func collectionOperations() map[string]operation {
	reads := []int{404, 409, 499, 501, 503}
	writes := []int{404, 409, 413, 499, 501, 503}
	pages := []parameter{{Name: "limit", In: "query", Schema: between("integer", 1, maxList)},
		{Name: "cursor", In: "query", Description: "next_cursor of the page before", Schema: text()}}
	return map[string]operation{
		"GET /v1/rag/collections": {id: "listCollections", tag: "rag", summary: "Collections of documents that the caller may read", list: true, out: []CollectionInfo{}, also: reads},
		"POST /v1/rag/collections": {id: "createCollection", tag: "rag", summary: "Make a collection", in: NewCollection{}, need: []string{"name"}, strict: true, out: CollectionInfo{}, also: writes,
			detail: "It belongs to the user who makes it. Not for agent keys.", example: example(`{"name":"manuals","description":"how the machines are run"}`)},
		"GET /v1/rag/collections/:name":    {id: "getCollection", tag: "rag", summary: "A collection: counts, and whose vectors it has", out: CollectionInfo{}, also: reads},
		"DELETE /v1/rag/collections/:name": {id: "deleteCollection", tag: "rag", summary: "Delete a collection, with its documents and the grants for it", out: deletedBody{}, also: reads},
		"GET /v1/rag/collections/:name/documents": {id: "listDocuments", tag: "rag", summary: "Documents of a collection, by id", params: pages, out: []DocumentInfo{},
			meta: map[string]*jsonschema.Schema{"next_cursor": text()}, also: append([]int{400}, reads...)},
		"POST /v1/rag/collections/:name/documents": {id: "addDocument", tag: "rag", summary: "Add or replace a document", in: NewDocument{}, need: []string{"text"}, strict: true, out: DocumentInfo{}, also: writes,
			detail:  "The one with the same id, else with the same source, is replaced; an unchanged text is not embedded again. All or nothing. Not for agent keys.",
			example: example(`{"source":"manual/pump.md","text":"# Pump\n\nRinse the filter every week.","metadata":{"lang":"en"}}`)},
		"GET /v1/rag/collections/:name/documents/:id":    {id: "getDocument", tag: "rag", summary: "A document with its text", out: DocumentInfo{}, also: reads},
		"DELETE /v1/rag/collections/:name/documents/:id": {id: "deleteDocument", tag: "rag", summary: "Delete a document", out: deletedBody{}, also: reads},
		"POST /v1/rag/search": {id: "searchPassages", tag: "rag", summary: "The passages that say most about a question", in: PassageQuery{}, need: []string{"query"}, strict: true, out: PassagesInfo{}, also: writes,
			detail:  "By vectors and by words, joined by rank. filter are facts of documents that must be equal. What passages say is data of others.",
			example: example(`{"query":"how often is the filter cleaned?","collections":["manuals"],"limit":3}`)},
	}
}
