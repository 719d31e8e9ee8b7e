package gateway

import (
	"github.com/google/jsonschema-go/jsonschema"
	"github.com/ollama/ollama/api"
	"github.com/ollama/ollama/openai"
)

// eventStream is the media type of server-sent events.
const eventStream = "text/event-stream"

func ollamaOperations() map[string]operation {
	stream := []string{ndjsonForm}
	rerank := operation{id: "rerank", tag: "ollama", summary: "How well documents answer a query, best first", in: rerankRequest{}, need: []string{"query", "documents"},
		out: rerankResponse{}, also: modelFails}
	v1 := rerank
	v1.id, v1.tag = "rerankV1", "openai"
	return map[string]operation{
		"GET /api/tags":   {id: "listModels", tag: "ollama", summary: "Models that the caller may use", out: tagsBody{}, also: []int{503}},
		"GET /api/ps":     {id: "listLoaded", tag: "ollama", summary: "Models that are loaded, and where", out: psBody{}, also: []int{503}},
		"GET /api/status": {id: "cloudStatus", tag: "ollama", summary: "Whether Ollama's cloud may be used: there is none here", out: cloudBody{}},
		"POST /api/show":  {id: "showModel", tag: "ollama", summary: "What a model is", in: showBody{}, out: showResponse{}, also: modelFails},
		"POST /api/chat": {id: "chat", tag: "ollama", summary: "Answer a conversation", in: chatRequest{}, out: chatLine{}, media: stream, also: modelFails,
			detail:  "A line for each piece, or one object with stream: false. Without messages the model is only loaded, or let go with keep_alive: 0.",
			example: example(`{"model":"smollm2:135m","messages":[{"role":"user","content":"Hello!"}],"stream":false}`)},
		"POST /api/generate":   {id: "generate", tag: "ollama", summary: "Go on from a text", in: generateRequest{}, out: generateLine{}, media: stream, also: modelFails},
		"POST /api/embed":      {id: "embed", tag: "ollama", summary: "A vector for each text", in: embedRequest{}, out: embedResponse{}, also: modelFails},
		"POST /api/embeddings": {id: "embeddings", tag: "ollama", summary: "The vector of one text: the old route", in: embedRequest{}, out: embeddingBody{}, also: modelFails},
		"POST /api/tokenize":   {id: "tokenize", tag: "ollama", summary: "How a model's tokenizer cuts a text", in: tokenizeBody{}, out: tokensBody{}, also: modelFails},
		"POST /api/detokenize": {id: "detokenize", tag: "ollama", summary: "The text of tokens", in: detokenizeBody{}, need: []string{"tokens"}, out: textBody{}, also: modelFails},
		"POST /api/rerank":     rerank,
		"POST /v1/rerank":      v1,

		"POST /api/pull":          {id: "pullModel", tag: "ollama", summary: "Get a model from a registry", in: transferRequest{}, out: api.ProgressResponse{}, media: stream, also: modelFails},
		"POST /api/push":          {id: "pushModel", tag: "ollama", summary: "Put a model into a registry", in: transferRequest{}, out: api.ProgressResponse{}, media: stream, also: modelFails},
		"POST /api/create":        {id: "createModel", tag: "ollama", summary: "Make a model of another, or of files", in: createRequest{}, out: api.ProgressResponse{}, media: stream, also: modelFails},
		"POST /api/copy":          {id: "copyModel", tag: "ollama", summary: "Give a model another name besides", in: api.CopyRequest{}, need: []string{"source", "destination"}, also: modelFails},
		"DELETE /api/delete":      {id: "deleteModel", tag: "ollama", summary: "Delete a model", in: nameField{}, also: modelFails},
		"HEAD /api/blobs/:digest": {id: "hasBlob", tag: "ollama", summary: "Whether a file is there", also: []int{404}},
		"POST /api/blobs/:digest": {id: "addBlob", tag: "ollama", summary: "Upload a file; 201 when it is new", file: true, status: []int{200, 201}, also: []int{400, 409, 413}},
	}
}

func openaiOperations() map[string]operation {
	events := []string{eventStream}
	model := &jsonschema.Schema{AnyOf: []*jsonschema.Schema{(&schemaBook{}).inferred(openai.Model{}), (&schemaBook{}).inferred(openai.ListCompletion{})}}
	return map[string]operation{
		"POST /v1/chat/completions": {id: "chatCompletion", tag: "openai", summary: "Answer a conversation", in: openaiChatRequest{}, need: []string{"model", "messages"}, out: chatCompletion{},
			media: events, also: modelFails, example: example(`{"model":"smollm2:135m","messages":[{"role":"user","content":"Hello!"}]}`)},
		"POST /v1/completions": {id: "completion", tag: "openai", summary: "Go on from a text", in: openaiCompletionRequest{}, need: []string{"model", "prompt"}, out: textCompletion{}, media: events, also: modelFails},
		"POST /v1/embeddings":  {id: "embeddingList", tag: "openai", summary: "A vector for each text", in: openaiEmbeddingRequest{}, need: []string{"model", "input"}, out: openai.EmbeddingList{}, also: modelFails},
		"GET /v1/models":       {id: "listOpenAIModels", tag: "openai", summary: "Models that the caller may use", out: openai.ListCompletion{}, also: []int{503}},
		"GET /v1/models/*model": {id: "getOpenAIModel", tag: "openai", summary: "A model; its name may have slashes", out: model, also: modelFails,
			detail: "An empty name lists them all."},
		"POST /v1/responses": {id: "createResponse", tag: "openai", summary: "Answer a conversation, in OpenAI's newer form; nothing is stored", in: responsesRequest{}, need: []string{"model", "input"},
			out: response{}, media: events, also: modelFails},
		"POST /v1/messages": {id: "createMessage", tag: "anthropic", summary: "Answer a conversation", in: anthropicRequest{}, need: []string{"model", "messages", "max_tokens"}, out: anthropicAnswer{},
			media: events, also: modelFails},
		"POST /v1/messages/count_tokens": {id: "countTokens", tag: "anthropic", summary: "How many tokens a conversation's prompt has", in: anthropicRequest{}, need: []string{"model", "messages"},
			out: inputTokensBody{}, also: modelFails},
	}
}
