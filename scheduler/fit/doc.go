// Package fit says how much memory a model takes on which device, before it is loaded, and where it goes. All of it is pure: the
// numbers come from the model's file (models.Layout), the devices' room from who asks.
//
//	bytes per device of a given placement    estimate.go
//	where a model goes                       place.go
package fit
