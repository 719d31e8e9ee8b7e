package gateway

import (
	"context"
	"log/slog"
	"slices"
	"testing"

	"sluice/runner"
	"sluice/scheduler"
)

func use(models ...string) scheduler.DeviceUse {
	return scheduler.DeviceUse{
		Device: runner.Device{ID: "CUDA0", Name: "NVIDIA H200", Library: "cuda", PCI: "0000:1b:00.0", TotalBytes: 80 << 30, FreeBytes: 30 << 30},
		Limit:  70 << 30, Used: 40 << 30, Reserved: 5 << 30, Models: models,
	}
}

func TestDevicesNameOnlyTheModelsOfTheCaller(t *testing.T) {
	for name, c := range map[string]struct {
		models, may, want []string
	}{
		"all of them":                  {[]string{"b:latest", "a:latest"}, []string{"a:latest", "b:latest"}, []string{"a:latest", "b:latest"}},
		"one of two":                   {[]string{"secret:latest", "mine:latest"}, []string{"mine:latest"}, []string{"mine:latest"}},
		"none: the list is not null":   {[]string{"secret:latest"}, nil, []string{}},
		"nothing loaded: not null too": {nil, []string{"mine:latest"}, []string{}},
	} {
		t.Run(name, func(t *testing.T) {
			got := devicesFor([]scheduler.DeviceUse{use(c.models...)}, func(m string) bool { return slices.Contains(c.may, m) })
			if len(got) != 1 || got[0].Models == nil || !slices.Equal(got[0].Models, c.want) {
				t.Fatalf("got %+v", got)
			}
			if d := got[0]; d.Used != 40<<30 || d.Reserved != 5<<30 || d.Limit != 70<<30 || d.Free != 30<<30 || d.Total != 80<<30 {
				t.Errorf("its bytes do not count any more: %+v", d)
			}
		})
	}
}

// stock is an inventory of fixed devices.
type stock []runner.Device

func (s stock) Devices(context.Context) ([]runner.Device, error) { return slices.Clone(s), nil }

func TestDevicesRoute(t *testing.T) {
	f := newFixture(t, func(cfg *Config) {
		fake := &fakeRunner{}
		sched, err := scheduler.New(scheduler.Config{
			NumCtx: 64, Log: slog.New(slog.DiscardHandler), Inventory: stock{{ID: runner.CPU, Library: "cpu", TotalBytes: 8 << 30, FreeBytes: 6 << 30, Threads: 2}},
			Start: func(context.Context) (scheduler.Runner, error) { return fake.start(), nil },
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- sched.Run(ctx) }()
		t.Cleanup(func() { stop(); <-ended })
		cfg.Scheduler = sched
	})
	get := func(bearer string) call { return call{method: "GET", path: "/v1/devices", bearer: bearer} }
	failure(t, f.do(get("")), 401, "unauthenticated")
	failure(t, f.do(get(wrongKey)), 401, "unauthenticated")
	wantStatus(t, f.do(call{method: "POST", path: "/api/generate", body: map[string]any{"model": "tiny", "prompt": "hi", "stream": false}}), 200)

	for bearer, models := range map[string][]any{adminKey: {"tiny:latest"}, readOnlyKey: {"tiny:latest"}, narrowKey: {}} {
		all := data[[]any](t, f.do(get(bearer)))
		if len(all) != 1 {
			t.Fatalf("%s: %v", bearer, all)
		}
		d := all[0].(map[string]any)
		got, ok := d["models"].([]any)
		if !ok || !slices.Equal(got, models) {
			t.Errorf("%s: models %v, want %v", bearer, d["models"], models)
		}
		if d["id"] != "cpu" || d["library"] != "cpu" || d["total_bytes"] != float64(8<<30) || d["free_bytes"] == nil || d["used_bytes"] == nil || d["reserved_bytes"] == nil || d["limit_bytes"] == nil {
			t.Errorf("%s: %v", bearer, d)
		}
	}
	failure(t, f.do(call{method: "GET", path: "/v1/nodes", bearer: adminKey}), 501, "unimplemented")
}
