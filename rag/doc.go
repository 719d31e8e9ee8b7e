// Package rag finds what a model is told about a database, and what a question is about.
//
// A [Profiler] looks at the tables of a database once and keeps what it found for each of them: how many values a column
// has, which they are, what refers to what. [Profiler.Knowledge] gives the part of that which one asker may be told. From it
// come the schema card ([Knowledge.Card]), which is the stable beginning of every prompt, and the tables, joins and values
// of one question ([Knowledge.Focus]). No model is asked for any of this.
//
// Rights: what one asker is told is put together from relations that he may read now, and from nothing else; whoever
// asked before. A statement reads one relation, or two for a join, and passes the gate with the asker's own rights. So a
// hidden table reaches neither a card nor a link nor a weight of a word.
//
// What databases hold is data: comments and values stand on one line of a card and cannot end it (OneLine).
//
// State is the Profiler's, behind one lock; at most one goroutine looks at a database, and Close waits for it. Knowledge
// never changes.
//
//	what an asker is told, and its types         knowledge.go, source.go
//	asking, waiting, refreshing, forgetting      profiler.go, known.go
//	the statements that look at a table          sample.go
//	which column refers to which                 joins.go
//	values by what people write for them         values.go, countries.go
//	phrases of a question, links, what is missing    phrases.go, links.go
//	which tables a question is about             focus.go, path.go
//	words, endings, names taken apart            words.go, names.go, english.go
//	what a table looks like to the model         card.go
//	names as the model must write them           identifier.go
package rag
