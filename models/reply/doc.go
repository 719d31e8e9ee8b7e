// Package reply reads what a model wrote: which of it is thinking, which a call of a tool, and which the answer.
//
// Models are trained on some thirty forms of a tool call, and small ones mix them. So a [Reader] knows all forms at once, and
// asks one question of each place that looks like a call: is it a complete call of a tool that was given? Then it is a call;
// anything else stays text, to the last character. The module's own parsers lose text when a call is malformed, take any
// JSON that holds a tool's name for a call, or end the stream with an error; they are used only to read the inside of a
// region that is complete, never on the stream.
//
// A decision depends on the text before and after it alone, not on how the text was cut into pieces: what is not yet clear
// is held back. Of the text only tags, the signs between calls, and the white space around them and around a thought are
// left out.
//
//	which reader for which model         reply.go
//	thinking and the answer              thought.go
//	where a call may begin and end       scan.go
//	calls between tags                   tagged.go, deepseek.go
//	calls without tags, code fences      bare.go
//	is this JSON a call                  call.go, json.go
//	what the module's parsers read       module.go
//	harmony, the format of gpt-oss       harmony.go
package reply
