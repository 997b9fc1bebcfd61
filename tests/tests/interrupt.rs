//! Runs that do not come to their end, and the session after them.

#![cfg(not(target_arch = "wasm32"))]

use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use kilim::core::Backend;
use kilim::core::backend::LocalFuture;
use kilim::core::ops::{Binary, BinaryKind, MatMul, Unary, UnaryKind};
use kilim::core::schedule::{Scheduler, StageRun};
use kilim::core::session::{MixedPrecision, SessionOptions};
use kilim::core::{AbortSignal, Datum, Interrupt, Session};
use kilim::{
    BackendId, DType, ErrorCode, Fact, Graph, LoadOptions, Placement, Result, RunOptions, Runtime,
    Tensor, VerifyOptions,
};
use kilim_tests::machine::{cpu, gpu, gpu_beside_others};
use kilim_tests::stand_in::StandIn;

/// `-|-|x||`, each node a step of its own where the operators are on two backends.
fn graph() -> Graph {
    let mut g = Graph::new("steps");
    let mut x = g.add_input("x", Fact::fixed(DType::F32, &[3]));
    for i in 0..2 {
        let abs = g.apply(format!("abs {i}"), Unary(UnaryKind::Abs), &[x]);
        x = g.apply(format!("neg {i}"), Unary(UnaryKind::Neg), &[abs]);
    }
    g.outputs.push(x);
    g
}

fn feeds(x: [f32; 3]) -> [(&'static str, Datum); 1] {
    [("x", Tensor::from_slice(&[3], &x).unwrap().into())]
}

/// Gives way after every step, and sets `abort` after so many.
#[derive(Default)]
struct Pausing {
    abort: Arc<AtomicBool>,
    after: AtomicUsize,
}

impl Scheduler for Pausing {
    fn run<'a>(&'a self, mut stage: StageRun<'a>) -> LocalFuture<'a, Result<()>> {
        Box::pin(async move {
            for index in 0..stage.steps.len() {
                let left = self.after.load(Ordering::Relaxed);
                self.abort.store(left == index, Ordering::Relaxed);
                stage.execute(index).await?;
                let mut paused = false;
                std::future::poll_fn(|context| {
                    context.waker().wake_by_ref();
                    match std::mem::replace(&mut paused, true) {
                        true => Poll::Ready(()),
                        false => Poll::Pending,
                    }
                })
                .await;
            }
            Ok(())
        })
    }
}

/// Polls a run so often and drops it; whether it came to its end.
fn dropped_after(polls: usize, run: impl Future) -> bool {
    let mut run = pin!(run);
    let mut context = Context::from_waker(Waker::noop());
    (0..polls).any(|_| run.as_mut().poll(&mut context).is_ready())
}

fn run(session: &mut Session, x: [f32; 3], options: &RunOptions) -> Result<Vec<(String, Datum)>> {
    pollster::block_on(session.run_data(&feeds(x), options))
}

#[track_caller]
fn assert_runs(session: &mut Session, what: &str) {
    let outputs = run(session, [1.0, -2.0, 3.0], &RunOptions::default());
    let outputs = outputs.unwrap_or_else(|e| panic!("{what}: {e}"));
    let values = outputs[0]
        .1
        .clone()
        .into_tensor()
        .unwrap()
        .to_f64s()
        .unwrap();
    assert_eq!(values, [-1.0, -2.0, -3.0], "{what}");
}

/// Sessions on `cpu` alone, and with the GPU where there is one.
fn sessions() -> Vec<(kilim::Session, Arc<Pausing>)> {
    let runtime = Runtime::shared();
    let open = |ids: &[&str], pins: &[&str]| {
        let scheduler = Arc::new(Pausing {
            after: AtomicUsize::new(usize::MAX),
            ..Pausing::default()
        });
        let mut options = LoadOptions {
            backends: ids.iter().map(|id| BackendId::from(*id)).collect(),
            ..LoadOptions::default()
        };
        options.placement = Placement::Fixed;
        options.pins = pins.iter().map(|pin| pin.parse().unwrap()).collect();
        options.optimise = false;
        options.scheduler = scheduler.clone();
        let session = pollster::block_on(runtime.session(graph(), options)).unwrap();
        (session, scheduler)
    };
    let mut sessions = vec![open(&["cpu"], &[])];
    if gpu_beside_others().is_some() {
        sessions.push(open(&["wgpu"], &[]));
        sessions.push(open(&["wgpu", "cpu"], &["op:Abs=cpu"]));
    }
    sessions
}

#[test]
fn a_run_that_is_dropped_leaves_the_session_as_it_was() {
    for (mut session, _) in sessions() {
        let ids: Vec<_> = session.options().pins.clone();
        for polls in 0.. {
            let feeds = feeds([7.0, 8.0, 9.0]);
            let options = RunOptions::default();
            let done = dropped_after(polls, session.run_data(&feeds, &options));
            assert_runs(&mut session, &format!("{ids:?} after {polls} polls"));
            if done {
                assert!(polls > 1, "it was never stopped in the middle");
                break;
            }
        }
    }
}

#[test]
fn a_run_that_is_aborted_leaves_the_session_as_it_was() {
    for (mut session, scheduler) in sessions() {
        for after in 0.. {
            scheduler.after.store(after, Ordering::Relaxed);
            let options = RunOptions {
                abort: Some(scheduler.abort.clone()),
                ..RunOptions::default()
            };
            let aborted = run(&mut session, [7.0, 8.0, 9.0], &options).map(drop);
            scheduler.after.store(usize::MAX, Ordering::Relaxed);
            assert_runs(&mut session, &format!("aborted before step {after}"));
            match aborted {
                Err(error) => assert_eq!(error.code(), ErrorCode::Aborted),
                Ok(()) => {
                    assert!(after > 0, "no step was aborted");
                    break;
                }
            }
            let late = RunOptions {
                timeout: Some(-1.0),
                ..RunOptions::default()
            };
            let error = run(&mut session, [7.0, 8.0, 9.0], &late).unwrap_err();
            assert_eq!(error.code(), ErrorCode::Aborted);
            assert_runs(&mut session, "after a timeout");
        }
    }
}

#[test]
fn what_has_begun_ends_where_a_run_is_dropped() {
    let cpu = cpu();
    let calls = Arc::new(Mutex::new(Vec::new()));
    let backend = |id: &'static str, takes: &'static str| -> Arc<dyn Backend> {
        let calls = calls.clone();
        let noted = move |call: &'static str| {
            calls.lock().unwrap().push((id, call));
            Ok(())
        };
        let taking = StandIn::new(cpu.clone(), id).taking(move |n| n.op.name() == takes);
        Arc::new(taking.on_call(noted))
    };
    let backends = vec![backend("one", "Abs"), backend("two", "Neg")];
    let options = SessionOptions {
        placement: Placement::Fixed,
        optimise: false,
        scheduler: Arc::new(Pausing {
            after: AtomicUsize::new(usize::MAX),
            ..Pausing::default()
        }),
        ..SessionOptions::default()
    };
    let session = Session::new(graph(), backends, cpu.clone(), options);
    let mut session = pollster::block_on(session).unwrap();
    calls.lock().unwrap().clear();
    let feeds = feeds([7.0, 8.0, 9.0]);
    assert!(!dropped_after(
        2,
        session.profile(&feeds, &RunOptions::default())
    ));
    let made = calls.lock().unwrap().clone();
    for id in ["one", "two"] {
        assert!(made.contains(&(id, "execute_begin")), "{made:?}");
        assert!(made.contains(&(id, "execute_end")), "{made:?}");
    }
    assert_runs(&mut session, "after a dropped profile");
    assert!(session.times().is_empty(), "the next run was timed, too");
}

/// Says stop from a certain question on, and counts them.
#[derive(Default)]
struct Counting {
    asked: AtomicUsize,
    stop: AtomicUsize,
}

impl AbortSignal for Counting {
    fn is_set(&self) -> bool {
        self.asked.fetch_add(1, Ordering::Relaxed) >= self.stop.load(Ordering::Relaxed)
    }
}

/// Whatever a session does with a run's options, it stops at any question, and goes on afterwards.
#[test]
fn profiles_comparisons_and_trials_stop_wherever_they_are() {
    let options = || {
        let mut options = LoadOptions {
            backends: vec![BackendId::from("cpu")],
            ..LoadOptions::default()
        };
        options.keep_weights = true;
        options
    };
    let runtime = Runtime::default().with_backend(cpu());
    let open = |options| pollster::block_on(runtime.session(graph(), options));
    let mut session = open(options()).unwrap();
    let feeds = feeds([7.0, 8.0, 9.0]);
    let mut profile = |signal: Arc<Counting>| {
        let options = RunOptions {
            abort: Some(signal),
            ..RunOptions::default()
        };
        pollster::block_on(session.profile(&feeds, &options)).map(drop)
    };
    stops_anywhere("a profile", &mut profile);
    let mut verify = |signal: Arc<Counting>| {
        let options = VerifyOptions {
            abort: Some(signal),
            ..VerifyOptions::default()
        };
        let found = pollster::block_on(kilim::verify(&mut session, &feeds, &options))?;
        assert!(found.passed() && found.nodes.iter().all(|n| n.error == Some(0.0)));
        Ok(())
    };
    stops_anywhere("a comparison", &mut verify);
    let mut trials = |signal: Arc<Counting>| {
        let mut options = options();
        options.interrupt = Interrupt::on(Some(signal));
        options.mixed_precision = Some(MixedPrecision {
            tolerance: 1e-3,
            samples: vec![vec![(
                "x".to_string(),
                Tensor::from_slice(&[3], &[1.0f32, 2.0, 3.0]).unwrap(),
            )]],
        });
        open(options).map(drop)
    };
    stops_anywhere("a load with trials", &mut trials);
}

/// A product of constants is computed when the model is loaded.
#[test]
fn loads_stop_within_what_they_fold() {
    let folded = |n: usize| {
        let mut g = Graph::new("folded");
        let ones = Tensor::from_slice(&[n, n], &vec![1.0f32; n * n]).unwrap();
        let (a, b) = (g.add_constant("a", ones.clone()), g.add_constant("b", ones));
        let product = g.apply("product", MatMul::default(), &[a, b]);
        let x = g.add_input("x", Fact::fixed(DType::F32, &[n, n]));
        let y = g.apply("y", Binary::new(BinaryKind::Add), &[x, product]);
        g.outputs.push(y);
        g
    };
    let runtime = Runtime::default().with_backend(cpu());
    let load = |n: usize, signal: Arc<Counting>| {
        let mut options = LoadOptions {
            backends: vec![BackendId::from("cpu")],
            ..LoadOptions::default()
        };
        options.interrupt = Interrupt::on(Some(signal));
        let session = pollster::block_on(runtime.session(folded(n), options))?;
        assert_eq!(session.report().nodes.len(), 1, "the product is folded");
        Ok(())
    };
    let small = stops_anywhere("a load", &mut |signal| load(8, signal));
    let large = stops_anywhere("a load that folds", &mut |signal| load(640, signal));
    assert!(large > small + 4, "asked {small} and {large} times");
}

/// Gives how often the work asks.
fn stops_anywhere(what: &str, work: &mut dyn FnMut(Arc<Counting>) -> Result<()>) -> usize {
    let mut tried = |stop: usize| {
        let signal = Arc::new(Counting {
            stop: stop.into(),
            ..Counting::default()
        });
        (work(signal.clone()), signal.asked.load(Ordering::Relaxed))
    };
    let (done, asked) = tried(usize::MAX);
    done.unwrap_or_else(|e| panic!("{what}: {e}"));
    assert!(asked > 3, "{what} asks {asked} times");
    for stop in 0..asked {
        let error = tried(stop).0.expect_err(what);
        assert_eq!(error.code(), ErrorCode::Aborted, "{what}, {stop}: {error}");
    }
    let (done, again) = tried(usize::MAX);
    done.unwrap_or_else(|e| panic!("{what}: {e}"));
    assert_eq!(again, asked, "{what}");
    asked
}

/// A chain of products that a software GPU takes seconds for, so that it is submitted in slices.
fn long_work() -> Graph {
    let (n, nodes) = (320, 64);
    let mut g = Graph::new("long");
    let mut x = g.add_input("x", Fact::fixed(DType::F32, &[n, n]));
    let mut identity = vec![0.0f32; n * n];
    (0..n).for_each(|i| identity[i * (n + 1)] = 1.0);
    let weights = Tensor::from_slice(&[n, n], &identity).unwrap();
    let weights = g.add_constant("identity", weights);
    for i in 0..nodes {
        x = g.apply(format!("product {i}"), MatMul::default(), &[x, weights]);
    }
    g.outputs.push(x);
    g
}

#[test]
fn a_long_run_on_a_gpu_stops_between_slices() {
    if gpu().is_none() {
        return;
    }
    let mut options = LoadOptions {
        backends: vec![BackendId::from("wgpu")],
        ..LoadOptions::default()
    };
    options.placement = Placement::Fixed;
    let runtime = Runtime::shared();
    let mut session = pollster::block_on(runtime.session(long_work(), options)).unwrap();
    let n = 320;
    let x: Vec<f32> = (0..n * n).map(|i| (i % 97) as f32).collect();
    let x = Tensor::from_slice(&[n, n], &x).unwrap();
    let mut run = |stop: usize| {
        let signal = Arc::new(Counting {
            stop: stop.into(),
            ..Counting::default()
        });
        let options = RunOptions {
            abort: Some(signal.clone()),
            ..RunOptions::default()
        };
        let feeds = [("x", x.clone().into())];
        let result = pollster::block_on(session.run_data(&feeds, &options));
        (result, signal.asked.load(Ordering::Relaxed))
    };
    let (whole, asked) = run(usize::MAX);
    let whole = whole.unwrap()[0].1.clone().into_tensor().unwrap();
    assert_eq!(whole, x);
    assert!(asked > 4, "asked {asked} times in a run of several slices");
    // Slices grow where the device turns out to be fast, so only the first questions are certain.
    for stop in [0, 1, 3] {
        let (stopped, times) = run(stop);
        assert_eq!(stopped.unwrap_err().code(), ErrorCode::Aborted);
        assert_eq!(times, stop + 1, "the run went on after it was told to stop");
        assert_eq!(
            run(usize::MAX).0.unwrap()[0]
                .1
                .clone()
                .into_tensor()
                .unwrap(),
            x
        );
    }
}

#[test]
fn who_watched_a_run_that_was_dropped_sees_nothing_of_the_next() {
    let (mut session, _) = sessions().remove(0);
    assert!(!dropped_after(
        1,
        session.profile(&feeds([7.0, 8.0, 9.0]), &RunOptions::default())
    ));
    assert_runs(&mut session, "after a dropped profile");
    assert!(session.times().is_empty(), "{:?}", session.times());
    let (_, times) =
        pollster::block_on(session.profile(&feeds([7.0, 8.0, 9.0]), &RunOptions::default()))
            .unwrap();
    assert_eq!(times.len(), 4);
}
