//! A trace as chrome://tracing and Perfetto show it.

use std::path::Path;

use kilim::core::schedule::TraceEvent;
use serde_json::{Value, json};

use crate::Failure;
use crate::data::io_error;

/// Writes `events` in the Trace Event Format: a process for each run, a thread for each backend.
pub fn write(file: &Path, events: &[TraceEvent]) -> Result<(), Failure> {
    let text = document(events).to_string();
    std::fs::write(file, text).map_err(|e| io_error(file, e).into())
}

fn document(events: &[TraceEvent]) -> Value {
    let origin = events.iter().map(|e| e.start).fold(f64::INFINITY, f64::min);
    let mut backends: Vec<&str> = events.iter().map(|e| e.backend.as_str()).collect();
    backends.sort_unstable();
    backends.dedup();
    let thread = |backend: &str| backends.iter().position(|b| *b == backend);
    let mut rows: Vec<Value> = Vec::with_capacity(events.len());
    let mut named = Vec::new();
    for e in events {
        let (run, tid) = (e.run, thread(&e.backend));
        if !named.contains(&(run, tid)) {
            named.push((run, tid));
            rows.push(json!({"ph": "M", "name": "process_name", "pid": run, "args": {"name": format!("run {run}")}}));
            rows.push(json!({"ph": "M", "name": "thread_name", "pid": run, "tid": tid, "args": {"name": e.backend}}));
        }
        rows.push(json!({
            "ph": "X",
            "name": e.name,
            "cat": e.backend,
            "pid": run,
            "tid": tid,
            "ts": (e.start - origin) * 1e6,
            "dur": (e.end - e.start) * 1e6,
        }));
    }
    json!({ "traceEvents": rows, "displayTimeUnit": "ms" })
}
