//! What runs beside what: backends, runs, and schedulers that users make; the GPU and the CPU in [`gpu`].

#![cfg(not(target_arch = "wasm32"))]

mod gpu;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use kilim::core::Session;
use kilim::core::backend::LocalFuture;
use kilim::core::ids::{BackendIndex, PartIndex};
use kilim::core::ops::{Binary, BinaryKind, MatMul, Unary, UnaryKind};
use kilim::core::schedule::{
    OverlappedScheduler, Scheduler, StageRun, Step, SyncScheduler, Trace, TraceEvent,
};
use kilim::core::session::SessionOptions;
use kilim::{DType, Error, ErrorCode, Fact, Graph, Placement, Result, RunOptions, Tensor};
use kilim_tests::machine::{cpu, gpu};
use kilim_tests::stand_in::StandIn;

/// Two that go on only together; who waits too long gets an error.
#[derive(Default)]
struct Meeting {
    arrived: Mutex<usize>,
    both: Condvar,
}

impl Meeting {
    fn arrive(&self, patience: Duration) -> Result<()> {
        let mut arrived = self.arrived.lock().unwrap();
        *arrived += 1;
        self.both.notify_all();
        let waited = self.both.wait_timeout_while(arrived, patience, |a| *a < 2);
        if waited.unwrap().1.timed_out() {
            return Err(Error::new(ErrorCode::State, "nobody came"));
        }
        Ok(())
    }
}

fn session(graph: Graph, backends: [StandIn; 2], scheduler: Arc<dyn Scheduler>) -> Session {
    let options = SessionOptions {
        placement: Placement::Fixed,
        scheduler,
        ..SessionOptions::default()
    };
    let backends = backends.map(|b| Arc::new(b) as Arc<dyn kilim::core::Backend>);
    pollster::block_on(Session::new(graph, backends.to_vec(), cpu(), options)).unwrap()
}

fn x() -> Tensor {
    Tensor::from_slice(&[3], &[1.0f32, -2.0, 3.0]).unwrap()
}

fn input(graph: &mut Graph) -> kilim::core::ValueId {
    graph.add_input("x", Fact::fixed(DType::F32, &[3]))
}

/// `max(-x, 0) + -|x|`: the first on `left`, the second and the sum on `right`.
fn branches() -> Graph {
    let mut g = Graph::new("branches");
    let x = input(&mut g);
    let neg = g.apply("left neg", Unary(UnaryKind::Neg), &[x]);
    let a = g.apply("left relu", Unary(UnaryKind::Relu), &[neg]);
    let abs = g.apply("right abs", Unary(UnaryKind::Abs), &[x]);
    let b = g.apply("right neg", Unary(UnaryKind::Neg), &[abs]);
    let sum = g.apply("right sum", Binary::new(BinaryKind::Add), &[a, b]);
    g.outputs.push(sum);
    g
}

const BRANCHES: [f32; 3] = [-1.0, 0.0, -3.0];

/// `|-x|`: one backend after the other.
fn chain() -> Graph {
    let mut g = Graph::new("chain");
    let x = input(&mut g);
    let neg = g.apply("left neg", Unary(UnaryKind::Neg), &[x]);
    let out = g.apply("right abs", Unary(UnaryKind::Abs), &[neg]);
    g.outputs.push(out);
    g
}

fn stand_in(id: &'static str) -> StandIn {
    StandIn::new(cpu(), id).taking(move |node| node.name.starts_with(id))
}

/// Both backends, whose first parts only run together.
fn meeting(patience: Duration) -> [StandIn; 2] {
    let meeting = Arc::new(Meeting::default());
    ["left", "right"].map(|id| {
        let meeting = meeting.clone();
        stand_in(id).on_run(move |part| match part {
            PartIndex(0) => meeting.arrive(patience),
            _ => Ok(()),
        })
    })
}

fn overlap(a: &TraceEvent, b: &TraceEvent) -> bool {
    a.start < b.end && b.start < a.end
}

const LONG: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(50);

#[test]
fn backends_work_at_the_same_time() {
    let mut s = session(
        branches(),
        meeting(LONG),
        Arc::new(OverlappedScheduler::default()),
    );
    let trace = Arc::new(Trace::new());
    let options = RunOptions {
        trace: Some(trace.clone()),
        ..RunOptions::default()
    };
    let out = pollster::block_on(s.run(&[("x", x())], &options)).unwrap();
    assert_eq!(out[0].1.as_slice::<f32>().unwrap(), BRANCHES);
    let events = trace.events();
    let on = |id: &str| -> Vec<&TraceEvent> { events.iter().filter(|e| e.backend == id).collect() };
    let (left, right) = (on("left"), on("right"));
    assert!(
        left.iter().any(|l| right.iter().any(|r| overlap(l, r))),
        "{events:?}"
    );
    assert!(
        events.iter().any(|e| e.name.ends_with("→ right")),
        "{events:?}"
    );
    assert_eq!(s.report().timeline, events);
}

#[test]
fn the_default_scheduler_does_one_thing_at_a_time() {
    let mut s = session(branches(), meeting(SHORT), Arc::new(SyncScheduler));
    let error = pollster::block_on(s.run(&[("x", x())], &RunOptions::default())).unwrap_err();
    assert_eq!(error.message(), "nobody came");
    let mut s = session(
        branches(),
        ["left", "right"].map(stand_in),
        Arc::new(SyncScheduler),
    );
    let trace = Arc::new(Trace::new());
    let options = RunOptions {
        trace: Some(trace.clone()),
        ..RunOptions::default()
    };
    pollster::block_on(s.run(&[("x", x())], &options)).unwrap();
    let events = trace.events();
    assert_eq!(events.len(), 3, "{events:?}");
    assert!(
        events.windows(2).all(|w| w[0].end <= w[1].start),
        "{events:?}"
    );
    // The trace goes on, the report has the last run.
    pollster::block_on(s.run(&[("x", x())], &options)).unwrap();
    assert_eq!(trace.events().len(), 6);
    let last = s.report().timeline;
    assert!(
        last.len() == 3 && last.iter().all(|e| e.run == 1),
        "{last:?}"
    );
}

#[test]
fn what_is_recorded_is_started_before_another_backend_is_waited_for() {
    let calls: Arc<Mutex<Vec<&'static str>>> = Arc::default();
    let log = calls.clone();
    let left = stand_in("left").on_call(move |call| {
        log.lock().unwrap().push(call);
        Ok(())
    });
    let scheduler = Arc::new(OverlappedScheduler::default());
    let mut s = session(branches(), [left, stand_in("right")], scheduler);
    pollster::block_on(s.run(&[("x", x())], &RunOptions::default())).unwrap();
    let calls = calls.lock().unwrap();
    let at = |name| calls.iter().position(|call| *call == name);
    let run = at("run").unwrap();
    assert_eq!(calls[run + 1], "submit", "{calls:?}");
}

/// The second run is on `left` while the first is on `right`.
fn pipelined(patience: Duration) -> [StandIn; 2] {
    let meeting = Arc::new(Meeting::default());
    let on_call = |nth: usize| {
        let (meeting, calls) = (meeting.clone(), AtomicUsize::new(0));
        move |_| match calls.fetch_add(1, Ordering::Relaxed) == nth {
            true => meeting.arrive(patience),
            false => Ok(()),
        }
    };
    [
        stand_in("left").on_run(on_call(1)),
        stand_in("right").on_run(on_call(0)),
    ]
}

#[test]
fn the_next_run_begins_where_the_last_one_is_done() {
    let mut s = session(
        chain(),
        pipelined(LONG),
        Arc::new(OverlappedScheduler::with_runs(2)),
    );
    let trace = Arc::new(Trace::new());
    let options = RunOptions {
        trace: Some(trace.clone()),
        ..RunOptions::default()
    };
    let handles: Vec<_> = (0..2)
        .map(|_| s.run_async(&[("x", x().into())], &options).unwrap())
        .collect();
    for handle in handles {
        let out = handle.wait().unwrap();
        let y = out[0].1.tensor().unwrap();
        assert_eq!(y.as_slice::<f32>().unwrap(), [1.0, 2.0, 3.0]);
    }
    let events = trace.events();
    let beside = |a: &TraceEvent, b: &TraceEvent| {
        a.run != b.run && a.backend == "left" && b.backend == "right" && overlap(a, b)
    };
    assert!(
        events.iter().any(|a| events.iter().any(|b| beside(a, b))),
        "{events:?}"
    );

    let mut s = session(chain(), pipelined(SHORT), Arc::new(SyncScheduler));
    let handles: Vec<_> = (0..2)
        .map(|_| {
            s.run_async(&[("x", x().into())], &RunOptions::default())
                .unwrap()
        })
        .collect();
    let results: Vec<_> = handles.into_iter().map(|h| h.wait()).collect();
    assert!(results.iter().any(Result::is_err), "{results:?}");
}

#[test]
fn a_handle_can_be_asked_without_waiting() {
    let gate = Arc::new(Meeting::default());
    let held = gate.clone();
    let left = stand_in("left").on_run(move |_| held.arrive(LONG));
    let mut s = session(chain(), [left, stand_in("right")], Arc::new(SyncScheduler));
    let wrong = s.run_async(&[("y", x().into())], &RunOptions::default());
    assert_eq!(wrong.err().map(|e| e.code()), Some(ErrorCode::Input));
    let mut handle = s
        .run_async(&[("x", x().into())], &RunOptions::default())
        .unwrap();
    assert!(handle.try_wait().is_none());
    gate.arrive(LONG).unwrap();
    let out = loop {
        if let Some(result) = handle.try_wait() {
            break result.unwrap();
        }
        std::thread::yield_now();
    };
    let y = out[0].1.tensor().unwrap();
    assert_eq!(y.as_slice::<f32>().unwrap(), [1.0, 2.0, 3.0]);
}

#[test]
fn a_session_that_goes_drops_what_has_not_begun() {
    let slow = stand_in("left").on_run(|_| {
        std::thread::sleep(Duration::from_millis(20));
        Ok(())
    });
    let mut s = session(chain(), [slow, stand_in("right")], Arc::new(SyncScheduler));
    // All of them would take a second.
    let handles = (0..50).map(|_| {
        s.run_async(&[("x", x().into())], &RunOptions::default())
            .unwrap()
    });
    let last = handles.last().unwrap();
    drop(s);
    assert_eq!(last.wait().unwrap_err().code(), ErrorCode::State);
}

#[test]
fn a_run_is_stopped_between_two_steps() {
    let abort = Arc::new(AtomicBool::new(false));
    let pulled = abort.clone();
    let left = stand_in("left").on_run(move |_| {
        pulled.store(true, Ordering::Relaxed);
        Ok(())
    });
    let scheduler = Arc::new(OverlappedScheduler::default());
    let mut s = session(chain(), [left, stand_in("right")], scheduler);
    let options = RunOptions {
        abort: Some(abort),
        ..RunOptions::default()
    };
    let error = pollster::block_on(s.run(&[("x", x())], &options)).unwrap_err();
    assert_eq!(error.code(), ErrorCode::Aborted);
}

#[test]
fn an_error_on_one_backend_ends_the_run_of_all() {
    let left = stand_in("left").on_run(|_| Err(Error::new(ErrorCode::Device, "gone")));
    let scheduler = Arc::new(OverlappedScheduler::default());
    let mut s = session(branches(), [left, stand_in("right")], scheduler.clone());
    let error = pollster::block_on(s.run(&[("x", x())], &RunOptions::default())).unwrap_err();
    assert_eq!(error.code(), ErrorCode::Device);
    let left = stand_in("left").on_run(|_| panic!("a kernel panics"));
    let mut s = session(branches(), [left, stand_in("right")], scheduler);
    let error = pollster::block_on(s.run(&[("x", x())], &RunOptions::default())).unwrap_err();
    assert_eq!(error.code(), ErrorCode::State);
}

/// All parts of `right` that can run before anything of `left`.
#[derive(Default)]
struct RightFirst {
    order: Mutex<Vec<Step>>,
}

impl Scheduler for RightFirst {
    fn overlaps(&self) -> bool {
        true
    }

    fn run<'a>(&'a self, mut stage: StageRun<'a>) -> LocalFuture<'a, Result<()>> {
        Box::pin(async move {
            let crossing = |s: &Step| matches!(s, Step::Permute { .. });
            let free = stage.steps.iter().position(crossing).unwrap_or(0);
            let mut order: Vec<usize> = (0..stage.steps.len()).collect();
            order[..free].reverse();
            for i in order {
                stage.execute(i).await?;
                self.order.lock().unwrap().push(stage.steps[i].clone());
            }
            Ok(())
        })
    }
}

#[test]
fn users_bring_their_own_scheduler() {
    let scheduler = Arc::new(RightFirst::default());
    let mut s = session(
        branches(),
        ["left", "right"].map(stand_in),
        scheduler.clone(),
    );
    let out = pollster::block_on(s.run(&[("x", x())], &RunOptions::default())).unwrap();
    assert_eq!(out[0].1.as_slice::<f32>().unwrap(), BRANCHES);
    let order = scheduler.order.lock().unwrap();
    let part = |backend, part| Step::Part {
        backend: BackendIndex(backend),
        part: PartIndex(part),
    };
    assert_eq!(order[..2], [part(1, 0), part(0, 0)]);
    assert_eq!(order[3], part(1, 1));
}
