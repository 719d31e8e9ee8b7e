// Package models keeps GGUF models in Ollama's own folder layout, and knows what is in them.
//
// A models folder has manifests/HOST/NAMESPACE/MODEL/TAG, small JSON files that name layers, and blobs/sha256-HEX, the
// layers. An Ollama's folder works here as it is, and the other way round. [Store] owns one folder: reads take no lock,
// since blobs never change and manifests are replaced by a rename; whatever removes or replaces holds Store.mu, and a
// digest that is pinned by a running Create or pull is not removed.
//
// GGUF files in further folders are models as they are. They come, change and go at any time, and are never written: what stands for
// their content is their header, size and time. A file that is replaced by a rename is another one for the next load, and whoever
// has the old one loaded keeps it; one that is cut in place takes its runner down (the engine maps it).
//
// Files and requests come from strangers. A GGUF header is bounds-checked before fs/ggml may allocate for it, a digest or
// name never becomes a path unless it is well formed, a model's template runs on a budget of steps and text, and one that came
// with a request may hardly loop at all.
//
// The other direction, from what a model wrote to thinking, calls and answer, is the package reply below.
//
//	what a model is, details, capabilities    model.go
//	names, their defaults, any case           name.go
//	finding and reading models                store.go, manifest.go
//	uploading blobs, durable writes           blob.go
//	making a model                            create.go, its files: base.go, convert.go
//	which template fits a GGUF file           detect.go, templates/
//	what a manifest may name, how much of it  bounds.go
//	copying, deleting, which blobs go         remove.go
//	what the package registry needs           transfer.go
//	facts and /api/show's key-values          facts.go; what a model takes in memory: layout.go, layout_read.go
//	models that run on a server elsewhere     remote.go
//	what a hostile GGUF may not do            header.go; its tensors, CheckGGUF: tensors.go
//	models of several GGUF files              shards.go; as one file: merge.go
//	GGUF files in folders, as they are        finding: folder.go; their names: filename.go; reading: loose.go
//	messages to a prompt, images, renderers   prompt.go; /api/generate's: generation.go
//	thinking: when, between which tags        think.go
//	running a template                        render.go, tooltext.go
//	what a hostile template may not do        budget.go, compare.go; one in a request: untrusted.go
//	options, their types and defaults         options.go
//	Modelfile and parameters as text          modelfile.go
//	models.yaml, the default model of a role  catalogue.go
package models
