//! Backends that work at the same time, and runs that do.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use super::{Scheduler, StageRun, StageTrace, Step, run_part};
use crate::error::Result;
use crate::executable::Executable;
use crate::ids::{BackendIndex, PartIndex, TensorIndex};
use crate::interrupt::Interrupt;
use crate::tensor::Tensor;
use crate::threading::LocalFuture;

/// Every backend runs its own steps as soon as what they need is there: natively on a thread of its
/// own; on the web all on one, where the host computes while a device that it has submitted to is at
/// work. Several runs of a session may be under way at once, so that the next one starts on a backend
/// that the last one is done with.
#[derive(Clone, Copy, Debug)]
pub struct OverlappedScheduler {
    runs: usize,
}

impl OverlappedScheduler {
    /// A scheduler for `runs` runs at once, each with arenas of its own; at least one.
    pub fn with_runs(runs: usize) -> OverlappedScheduler {
        OverlappedScheduler { runs: runs.max(1) }
    }
}

impl Default for OverlappedScheduler {
    fn default() -> Self {
        OverlappedScheduler::with_runs(2)
    }
}

impl Scheduler for OverlappedScheduler {
    fn run<'a>(&'a self, mut stage: StageRun<'a>) -> LocalFuture<'a, Result<()>> {
        Box::pin(async move {
            let crosses = stage
                .steps
                .iter()
                .any(|s| matches!(s, Step::Permute { .. }));
            let working = lanes_at_work(stage.steps, stage.executables.indices());
            if !crosses && working < 2 {
                for index in 0..stage.steps.len() {
                    stage.execute(index).await?;
                }
                return Ok(());
            }
            let mail: Vec<Mailbox> = stage.steps.iter().map(|_| Mailbox::default()).collect();
            let lanes = lanes(stage, &mail);
            drive(lanes).await.into_iter().collect()
        })
    }

    fn overlaps(&self) -> bool {
        true
    }

    fn runs_at_once(&self) -> usize {
        self.runs
    }
}

fn lanes_at_work(steps: &[Step], backends: impl Iterator<Item = BackendIndex>) -> usize {
    let works = |b: BackendIndex| {
        let of = |s: &Step| matches!(s, Step::Part { backend, .. } if *backend == b);
        steps.iter().any(of)
    };
    backends.filter(|&b| works(b)).count()
}

/// What a lane does in one step.
#[derive(Clone, Copy)]
enum Action<'a> {
    Part(PartIndex),
    /// Reads the first tensor of each pair and posts them.
    Send(&'a [(TensorIndex, TensorIndex)]),
    /// Writes what was posted into the second tensor of each pair.
    Receive(&'a [(TensorIndex, TensorIndex)]),
}

/// The steps of one backend, in order. Lanes only share the mailboxes, one for each step.
struct Lane<'a> {
    executable: &'a mut dyn Executable,
    actions: VecDeque<(usize, Action<'a>)>,
    mail: &'a [Mailbox],
    interrupt: &'a Interrupt,
    trace: Option<StageTrace<'a>>,
}

/// A lane for each backend.
fn lanes<'a>(stage: StageRun<'a>, mail: &'a [Mailbox]) -> Vec<Lane<'a>> {
    let StageRun {
        executables,
        steps,
        interrupt,
        trace,
    } = stage;
    let mut lanes = Vec::with_capacity(executables.len());
    for (b, executable) in executables.entries_mut() {
        let Some(executable) = executable else {
            continue;
        };
        let actions = steps.iter().enumerate().filter_map(|(i, step)| match step {
            Step::Part { backend, part } if *backend == b => Some((i, Action::Part(*part))),
            Step::Permute { from, pairs, .. } if *from == b => Some((i, Action::Send(pairs))),
            Step::Permute { to, pairs, .. } if *to == b => Some((i, Action::Receive(pairs))),
            _ => None,
        });
        lanes.push(Lane {
            executable: executable.as_mut(),
            actions: actions.collect(),
            mail,
            interrupt,
            trace,
        });
    }
    lanes
}

impl Lane<'_> {
    /// Runs to the end, or until something fails here or in a lane that this one waits for.
    async fn run(mut self) -> Result<()> {
        while let Some(&(step, action)) = self.actions.front() {
            if !self.act(step, action).await? {
                break;
            }
            self.actions.pop_front();
        }
        Ok(())
    }

    /// False where what the step waits for will never come.
    async fn act(&mut self, step: usize, action: Action<'_>) -> Result<bool> {
        self.interrupt.check()?;
        let mut start = self.trace.map(|t| t.now());
        match action {
            Action::Part(part) => {
                run_part(self.executable, part, self.interrupt).await?;
                self.executable.submit()?;
                if self.trace.is_some() {
                    self.executable.wait_finish().await?;
                }
            }
            Action::Send(pairs) => {
                let tensors: Vec<TensorIndex> = pairs.iter().map(|p| p.0).collect();
                let read = self.executable.read(&tensors).await?;
                self.mail[step].post(Some(read));
            }
            Action::Receive(pairs) => {
                let Some(tensors) = self.mail[step].take().await else {
                    return Ok(false);
                };
                for ((_, t), data) in pairs.iter().zip(&tensors) {
                    self.executable.write(*t, data)?;
                }
                // The lane that sent has recorded the crossing.
                start = None;
            }
        }
        if let (Some(trace), Some(start)) = (&self.trace, start) {
            trace.record(step, start);
        }
        Ok(true)
    }
}

impl Drop for Lane<'_> {
    /// Whoever waits for what this lane has not sent learns that it never will.
    fn drop(&mut self) {
        for (step, action) in &self.actions {
            if let Action::Send(_) = action {
                self.mail[*step].post(None);
            }
        }
    }
}

/// The tensors of one crossing, on their way from lane to lane.
#[derive(Default)]
struct Mailbox(Mutex<Post>);

#[derive(Default)]
struct Post {
    /// `Some(None)`: they will never come.
    tensors: Option<Option<Vec<Tensor>>>,
    waker: Option<Waker>,
}

impl Mailbox {
    fn lock(&self) -> MutexGuard<'_, Post> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn post(&self, tensors: Option<Vec<Tensor>>) {
        let mut post = self.lock();
        post.tensors = Some(tensors);
        if let Some(waker) = post.waker.take() {
            waker.wake();
        }
    }

    async fn take(&self) -> Option<Vec<Tensor>> {
        std::future::poll_fn(|cx| {
            let mut post = self.lock();
            match post.tensors.take() {
                Some(tensors) => Poll::Ready(tensors),
                None => {
                    post.waker = Some(cx.waker().clone());
                    Poll::Pending
                }
            }
        })
        .await
    }
}

/// Every lane on a thread of its own, the last one on this.
#[cfg(not(target_arch = "wasm32"))]
async fn drive(mut lanes: Vec<Lane<'_>>) -> Vec<Result<()>> {
    let Some(here) = lanes.pop() else {
        return Vec::new();
    };
    use crate::error::{Error, ErrorCode};
    let failed = |why| Error::new(ErrorCode::State, format!("a backend's thread {why}"));
    std::thread::scope(|scope| {
        let mut results = Vec::new();
        let mut others = Vec::with_capacity(lanes.len());
        for lane in lanes {
            let builder = std::thread::Builder::new().name("kilim lane".to_string());
            match builder.spawn_scoped(scope, || pollster::block_on(lane.run())) {
                Ok(other) => others.push(other),
                Err(e) => results.push(Err(failed(format!("cannot be started: {e}")))),
            }
        }
        results.push(pollster::block_on(here.run()));
        for other in others {
            let panicked = |_| Err(failed("panicked".to_string()));
            results.push(other.join().unwrap_or_else(panicked));
        }
        results
    })
}

/// All lanes on this thread, each going on when it can.
#[cfg(target_arch = "wasm32")]
async fn drive(lanes: Vec<Lane<'_>>) -> Vec<Result<()>> {
    let mut running: Vec<_> = lanes.into_iter().map(|l| Some(Box::pin(l.run()))).collect();
    let mut results = Vec::with_capacity(running.len());
    std::future::poll_fn(|cx| {
        for lane in &mut running {
            let Some(future) = lane else { continue };
            if let Poll::Ready(result) = future.as_mut().poll(cx) {
                results.push(result);
                *lane = None;
            }
        }
        if running.iter().any(Option::is_some) {
            Poll::Pending
        } else {
            Poll::Ready(std::mem::take(&mut results))
        }
    })
    .await
}
