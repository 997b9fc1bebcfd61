//! A timeline of runs.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use serde::Serialize;

use crate::order::sort_indices;

/// One step of one run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TraceEvent {
    /// The nodes that ran, or the values that crossed.
    pub name: String,
    /// The backend that ran them; of a crossing, the one that gave.
    pub backend: String,
    /// Counts the runs that were recorded in the same trace, from 0.
    pub run: usize,
    /// Seconds by the session's clock.
    pub start: f64,
    pub end: f64,
}

/// Collects what happened when. Give the same one to several runs to see how they overlap.
#[derive(Debug, Default)]
pub struct Trace {
    runs: AtomicUsize,
    events: Mutex<Vec<TraceEvent>>,
}

impl Trace {
    /// A trace without events.
    pub fn new() -> Trace {
        Trace::default()
    }

    /// The number of a run that starts now.
    pub(crate) fn begin(&self) -> usize {
        self.runs.fetch_add(1, Ordering::Relaxed)
    }

    /// Everything recorded so far, by its start.
    pub fn events(&self) -> Vec<TraceEvent> {
        let events = self.lock();
        let mut order: Vec<usize> = (0..events.len()).collect();
        sort_indices(&mut order, &mut |a, b| {
            events[a].start.total_cmp(&events[b].start)
        });
        order.into_iter().map(|i| events[i].clone()).collect()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<TraceEvent>> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How a step is called in a trace.
#[derive(Clone, Debug, Default)]
pub struct StepLabel {
    pub name: String,
    pub backend: String,
}

/// Where the steps of one run of a stage are recorded.
#[derive(Clone, Copy)]
pub struct StageTrace<'a> {
    pub trace: &'a Trace,
    pub run: usize,
    pub clock: fn() -> f64,
    /// For each step.
    pub labels: &'a [StepLabel],
}

impl StageTrace<'_> {
    /// Seconds, by the clock of the session.
    pub fn now(&self) -> f64 {
        (self.clock)()
    }

    /// Records that step `index` ran from `start` until now.
    pub fn record(&self, index: usize, start: f64) {
        let label = self.labels.get(index).cloned().unwrap_or_default();
        let end = self.now();
        self.trace.lock().push(TraceEvent {
            name: label.name,
            backend: label.backend,
            run: self.run,
            start,
            end,
        });
    }
}
