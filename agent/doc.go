// Package agent answers a question about a database: question → schema → candidate → gate → rows → answer.
//
// The model writes SQL and nothing else. What a person reads comes from code: the sentence from the rows, a decline from
// the gate's reason, a failure from what was tried. So no placeholder, tool call or SQL block of a model can reach a
// person, and whether a wish to write is refused never hangs on how a model words it.
//
// The asker's rights bound everything: the schema that the model sees, the statement that passes the gate, the errors.
//
// An Agent has no state of its own and is safe for concurrent use. It owns no model: cmd/sluice hands it a Completer.
//
//	what comes in and goes out           ask.go
//	the steps, outcomes, time limit      agent.go
//	what a refusal or error makes of it  gate.go
//	which model may be asked             model.go
//	the prompt, word by word             prompt.go
//	langchaingo's llms.Model over ours   llm.go
//	which tables the model gets to see   schema.go
//	rows into a table, the caps          rows.go
//	the sentence, and what it never has  sentence.go
//	scoring it on question sets          eval/
package agent
