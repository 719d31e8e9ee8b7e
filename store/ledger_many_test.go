//go:build !race

package store

// many is how many entries the ledgers have of which every change is tried.
const many = 1000
