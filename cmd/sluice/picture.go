package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/ollama/ollama/api"
	"github.com/ollama/ollama/types/model"
)

// maxPicture is the size of an image that is sent; the server has a limit of its own.
const maxPicture = 64 << 20

// picturePath finds what may be the path of an image: it begins with / or ./ or ../, and a space in it is written "\ ", as a
// terminal does when a file is dropped on it, or all of it stands in quotes.
var picturePath = regexp.MustCompile(`'(\.{0,2}/[^'\n]+?\.(?i:png|jpe?g|webp))'|"(\.{0,2}/[^"\n]+?\.(?i:png|jpe?g|webp))"|(?:^|\s)(\.{0,2}/(?:\\ |\S)+?\.(?i:png|jpe?g|webp))\b`)

// turn makes a message of what somebody typed. Paths of images are taken out of it and the files added, if the model takes
// images and the files are there; else the text stays as it is.
func (t *talk) turn(ctx context.Context, prompt string) (api.Message, error) {
	msg := api.Message{Role: "user", Content: prompt}
	found := picturePath.FindAllStringSubmatchIndex(prompt, -1)
	if len(found) == 0 || !t.takesImages(ctx) {
		return msg, nil
	}
	for _, at := range slices.Backward(found) { // so that the places before stay where they are
		from, to, whole := at[6], at[7], [2]int{at[6], at[7]}
		for _, quoted := range []int{2, 4} {
			if at[quoted] >= 0 {
				from, to, whole = at[quoted], at[quoted+1], [2]int{at[0], at[1]}
			}
		}
		path := strings.ReplaceAll(prompt[from:to], `\ `, " ")
		data, err := readPicture(path)
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			return msg, err
		}
		fmt.Fprintf(t.notes, "added the image %s\n", printable(path))
		msg.Content = msg.Content[:whole[0]] + msg.Content[whole[1]:]
		msg.Images = slices.Insert(msg.Images, 0, api.ImageData(data))
	}
	msg.Content = strings.TrimSpace(msg.Content)
	return msg, nil
}

func readPicture(path string) ([]byte, error) {
	stat, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !stat.Mode().IsRegular() || stat.Size() > maxPicture {
		return nil, fmt.Errorf("%s: not a file, or over %d MiB", path, maxPicture>>20)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if kind := http.DetectContentType(data); !strings.HasPrefix(kind, "image/") {
		return nil, fmt.Errorf("%s: this is no image but %s", path, kind)
	}
	return data, nil
}

// takesImages asks the server once. Where it does not say, the question itself will bring the error.
func (t *talk) takesImages(ctx context.Context) bool {
	if t.vision == nil {
		var got api.ShowResponse
		if err := t.client.call(ctx, "POST", "/api/show", map[string]string{"model": t.model}, &got); err != nil {
			return false
		}
		yes := slices.Contains(got.Capabilities, model.CapabilityVision)
		t.vision = &yes
	}
	return *t.vision
}
