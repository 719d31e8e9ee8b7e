// Package grammar writes and checks the grammars (GBNF) that hold a model's answer to a form.
//
// [Compile] turns a JSON Schema into a grammar. It refuses what it cannot keep, naming keyword and place, and never writes a
// grammar that would let more through than the schema does; it may let less through (properties come in the schema's order,
// objects and tuples are closed unless the schema opens them). [Check] reads a caller's grammar as llama.cpp would, and refuses
// what would crash it, hang it or leave it without a token. [Names] writes many literal words so that they are cheap to sample.
//
// Nothing here is shared between calls, so all may be called at once.
//
//	what Compile accepts, its bounds         compile.go
//	reading a schema, in its order           schema.go
//	$ref, allOf, anyOf, oneOf                expand.go, oneof.go
//	which keywords hold for a value          form.go
//	objects, arrays, strings, numbers        object.go, array.go, text.go, number.go
//	regular expressions                      pattern.go (reading), patternwrite.go (writing), charset.go
//	words as a trie, literals                trie.go
//	reading GBNF                             gbnf.go
//	what Check refuses                       check.go, analyse.go
package grammar
