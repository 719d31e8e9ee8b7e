// Package inventory says what there is to load models on: the devices that the engine sees, with what they have free at this moment.
//
//	one reading of everything           inventory.go
//	NVIDIA's own numbers                nvml.go, loaded at run time
//	main memory, control groups         memory.go
//	machines written in a file          described.go
package inventory
