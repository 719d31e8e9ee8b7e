package gateway

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"sluice/scheduler"
)

// schedulerMetrics asks the scheduler what is loaded and what it has done, at each scrape: a model that is gone has no series
// left.
type schedulerMetrics struct{ s *server }

var (
	loadedDesc  = prometheus.NewDesc("sluice_models_loaded", "Models that are loaded, or on the way in or out.", []string{"state"}, nil)
	streamDesc  = prometheus.NewDesc("sluice_model_requests_in_flight", "Requests that hold a lease on a loaded model.", []string{"model"}, nil)
	bytesDesc   = prometheus.NewDesc("sluice_model_bytes", "Memory of a loaded model, as its runner measured it.", []string{"model", "place"}, nil)
	loadsDesc   = prometheus.NewDesc("sluice_model_loads_total", "Loads that ended.", []string{"outcome"}, nil)
	unloadsDesc = prometheus.NewDesc("sluice_model_unloads_total", "Runners that went.", []string{"reason"}, nil)
	waitingDesc = prometheus.NewDesc("sluice_queue_waiting", "Requests that wait for a model.", nil, nil)
	refusedDesc = prometheus.NewDesc("sluice_requests_refused_total", "Requests that got no model.", []string{"why"}, nil)
	deviceDesc  = prometheus.NewDesc("sluice_device_bytes", "Memory of a device: in all, free, used by loaded models, reserved for those that are loading.",
		[]string{"device", "kind"}, nil)
)

// What is counted from the start on, so that the first one is a rise from 0 and not a series out of nowhere.
var (
	loadOutcomes  = []string{"ready", "failed", "abandoned"}
	unloadReasons = []scheduler.Reason{scheduler.ReasonIdle, scheduler.ReasonRoom, scheduler.ReasonContext, scheduler.ReasonAsked,
		scheduler.ReasonLeft, scheduler.ReasonFailed, scheduler.ReasonDied, scheduler.ReasonShutdown}
	refusals = []string{"full", "timeout", "failed", "memory", "unreachable"}
)

// Describe is part of prometheus.Collector.
func (schedulerMetrics) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{loadedDesc, streamDesc, bytesDesc, loadsDesc, unloadsDesc, waitingDesc, refusedDesc, deviceDesc} {
		ch <- d
	}
}

// Collect is part of prometheus.Collector. When the scheduler does not answer, the series are missing rather than wrong.
func (m schedulerMetrics) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	loaded, err := m.s.cfg.Scheduler.Loaded(ctx)
	if err != nil {
		return
	}
	stats, err := m.s.cfg.Scheduler.Stats(ctx)
	if err != nil {
		return
	}
	send := series(ch)
	send.loaded(loaded)
	send.stats(stats)
}

// series is where metrics go.
type series chan<- prometheus.Metric

func (ch series) gauge(desc *prometheus.Desc, v float64, labels ...string) {
	ch <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, v, labels...)
}

func (ch series) counter(desc *prometheus.Desc, v int, label string) {
	ch <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, float64(v), label)
}

func (ch series) loaded(loaded []scheduler.Loaded) {
	states := map[string]int{"loading": 0, "ready": 0, "draining": 0, "stopping": 0}
	inFlight, gpu, cpu := map[string]int{}, map[string]uint64{}, map[string]uint64{}
	for _, m := range loaded {
		// A model may be there several times, as replicas or on its way out: a series must not.
		name := m.Model.Name
		states[m.State]++
		inFlight[name] += m.InFlight
		gpu[name] += gpuBytesOf(m)
		cpu[name] += bytesOf(m) - gpuBytesOf(m)
	}
	for state, n := range states {
		ch.gauge(loadedDesc, float64(n), state)
	}
	for name, n := range inFlight {
		ch.gauge(streamDesc, float64(n), name)
		ch.gauge(bytesDesc, float64(gpu[name]), name, "gpu")
		ch.gauge(bytesDesc, float64(cpu[name]), name, "cpu")
	}
}

func (ch series) stats(stats scheduler.Stats) {
	ch.gauge(waitingDesc, float64(stats.Waiting))
	count := func(desc *prometheus.Desc, counted map[string]int, known []string) {
		all := map[string]int{}
		for _, label := range known {
			all[label] = 0
		}
		for label, n := range counted {
			all[label] = n
		}
		for label, n := range all {
			ch.counter(desc, n, label)
		}
	}
	reasons, known := map[string]int{}, []string{}
	for reason, n := range stats.Unloads {
		reasons[string(reason)] = n
	}
	for _, reason := range unloadReasons {
		known = append(known, string(reason))
	}
	count(loadsDesc, stats.Loads, loadOutcomes)
	count(unloadsDesc, reasons, known)
	count(refusedDesc, stats.Refused, refusals)
	for _, d := range stats.Devices {
		ch.gauge(deviceDesc, float64(d.TotalBytes), d.ID, "total")
		ch.gauge(deviceDesc, float64(d.FreeBytes), d.ID, "free")
		ch.gauge(deviceDesc, float64(d.Used), d.ID, "used")
		ch.gauge(deviceDesc, float64(d.Reserved), d.ID, "reserved")
	}
}
