// Package agent answers a question about a database: question → what is known → candidates → mending → gate → rows → doubts →
// vote → answer, or an honest no.
//
// The model writes SQL and nothing else, if wanted under a grammar of the tables that the asker may read. What a person
// reads comes from code: the sentence from the rows, a decline from the gate's reason or from what is known of the data, a
// failure from what was tried. So no placeholder, tool call or SQL block of a model can reach a person. Only when most of
// the candidates say that a question cannot be answered is their reason shown, and then without numbers.
//
// The asker's rights bound everything: what the model sees of schema, values, examples and earlier turns, what the grammar
// can write, what mending may join, the statement that passes the gate, the errors.
//
// Everything on the way of one question is in one ask, on one goroutine. An Agent keeps only its rag.Profiler, which looks at
// tables in the background until Close; it is safe for concurrent use. It owns no model: cmd/sluice hands it a Completer.
//
//	what comes in and goes out              ask.go
//	the order of the steps, time limit      agent.go
//	what is known, what it is about         know.go        rag finds it
//	the agent's prompt                      guided.go
//	what wordings mean in SQL               hints.go
//	grammars: tables in focus, all tables   grammar.go, gbnf.go
//	rounds, the model's calls, one try      candidates.go
//	showing the model its error             repair.go
//	what speaks against a statement         doubt.go       joins, tables
//	against its values and words            doubtwords.go
//	leaving that out of it                  prune.go
//	which result wins                       vote.go
//	when to say no, and what instead        decline.go, attributes.go
//	earlier turns, confirmed questions      conversation.go
//	mending without the model               mend.go, mendjoin.go, mendvalue.go
//	places in a statement's text            sqltext.go, sqlblocks.go
//	what a refusal or error makes of it     gate.go
//	a wish to copy: reading it, asking      copywish.go, copywish_request.go
//	how strict the gate is, by the role     profile.go     the gateway asks there too
//	which model may be asked                model.go
//	langchaingo's llms.Model over ours      llm.go
//	rows into a table, the caps             rows.go
//	the sentence, and what it never has     sentence.go
//	the plain prompt, word by word          prompt.go, plain.go
//	leaving techniques out                  techniques.go
//	scoring it on question sets             eval/
package agent
