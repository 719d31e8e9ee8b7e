package gateway

import (
	"encoding/binary"
	"hash"
	"hash/fnv"

	"github.com/gin-gonic/gin"
	"github.com/ollama/ollama/api"
)

// Of several runners of a model, the one that has read the beginning of a prompt reads the least of it again. How prompts begin is told
// the scheduler as a chain of hashes. They only guide it: two prompts with the same hash are answered right all the same.
const (
	prefixLinks = 64      // of a chain at most: what comes behind them is as new as the end
	prefixField = 1 << 16 // bytes of one text that are looked at
	prefixBlock = 1 << 10 // bytes of a prompt without messages that are one link
)

// chain makes hashes, each of all that was added so far. It begins with the caller and the model's name: nobody's prompts send another's
// to where they were read, whose time would tell of them.
type chain struct {
	hash.Hash64
	links []uint64
}

func newChain(c *gin.Context, model string) *chain {
	ch := &chain{Hash64: fnv.New64a()}
	ch.add(wordOf(principal(c)))
	ch.add(model)
	return ch
}

// add adds a text and its length, so that two texts are never taken for one.
func (c *chain) add(text string) {
	var length [8]byte
	binary.LittleEndian.PutUint64(length[:], uint64(len(text)))
	_, _ = c.Write(length[:]) // a hash never fails
	_, _ = c.Write([]byte(text[:min(len(text), prefixField)]))
}

func (c *chain) link() { c.links = append(c.links, c.Sum64()) }

// prefixOf is the chain of a dialog: the tools first, as in the prompts.
func prefixOf(c *gin.Context, model string, messages []api.Message, tools []api.Tool) []uint64 {
	ch := newChain(c, model)
	for _, tool := range tools[:min(len(tools), prefixLinks)] {
		ch.add(tool.Function.Name)
		ch.add(tool.Function.Description)
	}
	for _, msg := range messages[:min(len(messages), prefixLinks)] {
		for _, text := range []string{msg.Role, msg.Content, msg.Thinking, msg.ToolName} {
			ch.add(text)
		}
		for _, image := range msg.Images {
			ch.add(string(image[:min(len(image), prefixField)]))
		}
		for _, call := range msg.ToolCalls {
			ch.add(call.Function.Name)
			ch.add(call.Function.Arguments.String())
		}
		ch.link()
	}
	return ch.links
}

// prefixOfText is the chain of a text: a link for each full block of it, and one for the whole where it is short.
func prefixOfText(c *gin.Context, model, system, text string, images [][]byte) []uint64 {
	ch := newChain(c, model)
	ch.add(system)
	for _, image := range images {
		ch.add(string(image[:min(len(image), prefixField)]))
	}
	for len(text) >= prefixBlock && len(ch.links) < prefixLinks {
		ch.add(text[:prefixBlock])
		ch.link()
		text = text[prefixBlock:]
	}
	if len(ch.links) == 0 {
		ch.add(text)
		ch.link()
	}
	return ch.links
}
