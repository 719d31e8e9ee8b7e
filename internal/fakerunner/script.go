package main

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"sluice/runner"
)

// script is what the fake shall do; main.go says what the fields mean.
type script struct {
	load, delay, ping  time.Duration
	spin               time.Duration
	loadError          string
	texts              []string
	tokens             int
	rate               float64
	dieAfter, errAfter int
	width, train       int
	weights, kv, gpu   uint64
	kvToken, compute   uint64
	oomAbove           uint64
	layers             int
	devices            []runner.Device
	loadDie, hang      bool
	stay, pooled       bool
	vision, reranks    bool
}

// parse lays a query over a script. An unknown key is an error, so that a test cannot misspell one and pass.
func parse(s script, query string) (script, error) {
	values, err := url.ParseQuery(query)
	if err != nil {
		return s, err
	}
	for key, list := range values {
		v := list[len(list)-1]
		switch key {
		case "load":
			s.load, err = time.ParseDuration(v)
		case "delay":
			s.delay, err = time.ParseDuration(v)
		case "ping":
			s.ping, err = time.ParseDuration(v)
		case "spin":
			s.spin, err = time.ParseDuration(v)
		case "load_error":
			s.loadError = v
		case "text":
			s.texts = list
		case "tokens":
			s.tokens, err = strconv.Atoi(v)
		case "rate":
			s.rate, err = strconv.ParseFloat(v, 64)
		case "die_after":
			s.dieAfter, err = strconv.Atoi(v)
		case "error_after":
			s.errAfter, err = strconv.Atoi(v)
		case "width":
			s.width, err = strconv.Atoi(v)
		case "train":
			s.train, err = strconv.Atoi(v)
		case "weights":
			s.weights, err = strconv.ParseUint(v, 10, 64)
		case "kv":
			s.kv, err = strconv.ParseUint(v, 10, 64)
		case "gpu":
			s.gpu, err = strconv.ParseUint(v, 10, 64)
		case "kv_token":
			s.kvToken, err = strconv.ParseUint(v, 10, 64)
		case "compute":
			s.compute, err = strconv.ParseUint(v, 10, 64)
		case "oom_above":
			s.oomAbove, err = strconv.ParseUint(v, 10, 64)
		case "layers":
			s.layers, err = strconv.Atoi(v)
		case "devices":
			s.devices = nil
			err = json.Unmarshal([]byte(v), &s.devices)
		case "load_die":
			s.loadDie = v == "1"
		case "hang":
			s.hang = v == "1"
		case "stay":
			s.stay = v == "1"
		case "pooled":
			s.pooled = v == "1"
		case "vision":
			s.vision = v == "1"
		case "reranks":
			s.reranks = v == "1"
		default:
			err = fmt.Errorf("unknown key")
		}
		if err != nil {
			return s, fmt.Errorf("script key %q: %w", key, err)
		}
	}
	return s, nil
}

// ofPath reads the script behind a model's path.
func ofPath(s script, path string) (script, error) {
	_, query, _ := strings.Cut(path, "?")
	return parse(s, query)
}

// ofPrompt reads the script within a prompt, and gives the prompt without it.
func ofPrompt(s script, prompt string) (script, string, error) {
	before, rest, found := strings.Cut(prompt, "{{")
	query, after, closed := strings.Cut(rest, "}}")
	if !found || !closed {
		return s, prompt, nil
	}
	s, err := parse(s, query)
	return s, before + after, err
}
