// Package inventory says what there is to load models on: the devices that the engine sees, with what they have free at this moment.
//
// The engine's list is asked for once, because it starts a process; the numbers are then kept live without it: GPUs by NVIDIA's own
// library, main memory by the kernel and the control groups. A device that nobody here has live numbers of (Vulkan, ROCm, a MIG slice
// among equal ones) keeps the engine's, and the list is asked for again when they are old. Nothing here waits for a driver for longer
// than a time limit.
//
//	one reading of everything              inventory.go
//	which of NVIDIA's numbers is whose     match.go
//	NVIDIA's own numbers                   nvml.go, loaded at run time; its time limit: live.go
//	main memory                            memory.go
//	control groups                         cgroup.go
//	GPUs on the bus, driver or not         cards.go
//	machines written in a file             described.go
package inventory
