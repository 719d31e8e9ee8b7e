// Package sluice holds what the whole program carries with it: the catalogue of models.
package sluice

import _ "embed"

// Catalogue is models.yaml: the models that Sluice knows by role, for whoever has not set a catalogue of their own.
//
//go:embed models.yaml
var Catalogue []byte
