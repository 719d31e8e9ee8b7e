//go:build race

package store

// many is fewer under the race detector, with which each walk takes thirty times as long.
const many = 200
