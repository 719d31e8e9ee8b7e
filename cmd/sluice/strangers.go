package main

import (
	"context"
	"log/slog"
	"runtime"
	"strings"
)

// strangers keeps what libraries log through the default logger out of the server's log, but for the fact that they did: they
// write what they were given, such as the text of a model's answer that one could not read, which is somebody's data.
// Only records of our own functions pass as they are.
type strangers struct{ slog.Handler }

// setDefaultLog makes the server's log the one that packages without a logger of their own write to.
func setDefaultLog(log *slog.Logger) { slog.SetDefault(slog.New(strangers{log.Handler()})) }

// Handle passes a record of ours on, and of another only who made it.
func (h strangers) Handle(ctx context.Context, r slog.Record) error {
	function := functionOf(r.PC)
	if ours(function) {
		return h.Handler.Handle(ctx, r)
	}
	bare := slog.NewRecord(r.Time, r.Level, "a library logged something that is left out here, as it may hold users' data", r.PC)
	bare.AddAttrs(slog.String("function", function))
	return h.Handler.Handle(ctx, bare)
}

// WithAttrs drops the attributes: whose logger it is shows only with a record.
func (h strangers) WithAttrs([]slog.Attr) slog.Handler { return h }

// WithGroup drops the group, as it has no attributes.
func (h strangers) WithGroup(string) slog.Handler { return h }

// functionOf gives the full name of a function, "" when it is not known, as with what comes through the package log.
func functionOf(pc uintptr) string {
	if pc == 0 {
		return ""
	}
	frame, _ := runtime.CallersFrames([]uintptr{pc}).Next()
	return frame.Function
}

func ours(function string) bool {
	return strings.HasPrefix(function, "sluice/") || strings.HasPrefix(function, "sluice.") || strings.HasPrefix(function, "main.")
}
