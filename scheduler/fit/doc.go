// Package fit says how much memory a model takes on which device, before it is loaded, and where it goes. All of it is pure: the
// numbers come from the model's file (models.Layout), the devices' room from who asks. Figure sched.fit_error (bench/sched/fit.go)
// holds its estimates to what the engine allocates.
//
// Sizes are counted in float64: exact up to 2^53 bytes, and a hostile file's huge numbers stay huge instead of wrapping to small ones.
//
//	what is to be loaded, a load from a request   load.go
//	contexts and batches, as the engine has them  dims.go
//	bytes per device of a given placement         estimate.go
//	buffers of the graphs                         graph.go
//	where a model goes                            place.go
//	the whole model over several GPUs             split.go
//	learning from what was allocated              correct.go
package fit
