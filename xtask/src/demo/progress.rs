//! Tells which steps of a job are under way, and about how long the rest takes.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Steps of one lane run one after another. The lanes run beside each other, and the lane `Last` after them.
#[derive(Clone, Copy, PartialEq)]
pub enum Lane {
    Web,
    Native,
    Installs,
    Last,
}

pub struct Step {
    pub name: &'static str,
    pub lane: Lane,
    /// What it took where nothing was there, on 2 cores with the other lanes beside it.
    pub seconds: f64,
}

#[derive(Clone, Copy)]
enum State {
    Waiting,
    Running(Instant),
    Done(f64),
}

pub struct Progress {
    steps: &'static [Step],
    state: Mutex<Vec<State>>,
    ended: Condvar,
    /// Set while `state` is held, so that nobody begins to wait after it.
    over: AtomicBool,
    /// Exists when all steps were done once: then most of what they make is there, and nothing is said of time.
    stamp: PathBuf,
    first: bool,
}

/// How often there is a word of steps that take long.
const SIGN_OF_LIFE: Duration = Duration::from_secs(30);

impl Progress {
    pub fn new(steps: &'static [Step], stamp: PathBuf) -> Self {
        Self {
            steps,
            state: Mutex::new(vec![State::Waiting; steps.len()]),
            ended: Condvar::new(),
            over: AtomicBool::new(false),
            first: !stamp.exists(),
            stamp,
        }
    }

    /// Does the next step that waits in the lane.
    pub fn step<T>(
        &self,
        lane: Lane,
        work: impl FnOnce() -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        let number = {
            let mut state = self.state();
            let waits =
                |i: &usize| self.steps[*i].lane == lane && matches!(state[*i], State::Waiting);
            let Some(number) = (0..self.steps.len()).find(waits) else {
                anyhow::bail!("the job has more steps than were announced")
            };
            state[number] = State::Running(Instant::now());
            let begun = state.iter().filter(|s| !matches!(s, State::Waiting));
            let (begun, count) = (begun.count(), self.steps.len());
            let name = self.steps[number].name;
            println!("step {begun} of {count}: {name}{}", self.left(&state));
            number
        };
        let begun = Instant::now();
        let result = work();
        if let Err(error) = &result {
            // The job ends when the other lanes have done what they are at.
            println!("cannot {}: {error:#}", self.steps[number].name);
        }
        self.state()[number] = State::Done(begun.elapsed().as_secs_f64());
        result
    }

    /// Says now and then what is under way, until [`Progress::end`].
    pub fn watch(&self) {
        let mut state = self.state();
        while !self.over.load(Ordering::Relaxed) {
            let waited = self.ended.wait_timeout(state, SIGN_OF_LIFE);
            let (kept, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
            state = kept;
            if !timeout.timed_out() {
                continue;
            }
            let running = self
                .steps
                .iter()
                .zip(&*state)
                .filter_map(|(step, state)| match state {
                    State::Running(since) => Some(format!(
                        "{} ({:.0} s)",
                        step.name,
                        since.elapsed().as_secs_f64()
                    )),
                    _ => None,
                });
            let running: Vec<String> = running.collect();
            println!("still: {}{}", running.join(", "), self.left(&state));
        }
    }

    /// Ends [`Progress::watch`]; `whole` if every step was done.
    pub fn end(&self, whole: bool) {
        let state = self.state();
        self.over.store(true, Ordering::Relaxed);
        drop(state);
        self.ended.notify_all();
        if whole && let Some(folder) = self.stamp.parent() {
            // Without it the next run says how long a first one takes.
            let _ = fs::create_dir_all(folder).and_then(|()| fs::write(&self.stamp, ""));
        }
    }

    fn state(&self) -> MutexGuard<'_, Vec<State>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// ", about 3 min left" in a first run.
    fn left(&self, state: &[State]) -> String {
        match self.first {
            true => format!(", {}", words(seconds_left(self.steps, state))),
            false => String::new(),
        }
    }
}

/// The seconds that are left, by what the steps take elsewhere and how this machine did so far.
fn seconds_left(steps: &[Step], state: &[State]) -> f64 {
    // What took next to nothing was there before, and says nothing of the machine.
    let done = steps
        .iter()
        .zip(state)
        .filter_map(|(step, state)| match state {
            State::Done(took) if *took > 0.1 * step.seconds => Some((*took, step.seconds)),
            _ => None,
        });
    let (took, expected) = done.fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    // A minute of the usual, so that a first short step does not decide.
    let pace = (took + 60.0) / (expected + 60.0);
    let rest = |lane: Lane| -> f64 {
        let of_lane = steps
            .iter()
            .zip(state)
            .filter(|(step, _)| step.lane == lane);
        let seconds = of_lane.map(|(step, state)| match state {
            State::Waiting => step.seconds * pace,
            // Of one that takes longer than expected, nobody knows how long.
            State::Running(since) => {
                (step.seconds * pace - since.elapsed().as_secs_f64()).max(step.seconds * 0.1)
            }
            State::Done(_) => 0.0,
        });
        seconds.sum()
    };
    let beside = [Lane::Web, Lane::Native, Lane::Installs].map(rest);
    beside.into_iter().fold(0.0, f64::max) + rest(Lane::Last)
}

fn words(seconds: f64) -> String {
    match (seconds / 60.0).round() as u64 {
        0 => "less than a minute left".to_owned(),
        minutes => format!("about {minutes} min left"),
    }
}

#[cfg(test)]
mod tests {
    use super::{Lane, State, Step, seconds_left, words};
    use std::time::Instant;

    const STEPS: &[Step] = &[
        Step {
            name: "compile",
            lane: Lane::Web,
            seconds: 120.0,
        },
        Step {
            name: "optimise",
            lane: Lane::Web,
            seconds: 60.0,
        },
        Step {
            name: "build",
            lane: Lane::Native,
            seconds: 100.0,
        },
        Step {
            name: "install",
            lane: Lane::Installs,
            seconds: 20.0,
        },
        Step {
            name: "ask",
            lane: Lane::Last,
            seconds: 10.0,
        },
    ];

    #[test]
    fn the_longest_lane_and_what_comes_after_it_are_left() {
        let mut state = [State::Waiting; 5];
        assert_eq!(seconds_left(STEPS, &state), 190.0);
        state[0] = State::Done(120.0);
        state[2] = State::Running(Instant::now());
        assert!((seconds_left(STEPS, &state) - 110.0).abs() < 1.0);
    }

    #[test]
    fn a_slow_machine_takes_longer_and_what_was_there_before_says_nothing() {
        let mut state = [State::Waiting; 5];
        state[0] = State::Done(300.0);
        assert_eq!(seconds_left(STEPS, &state), 2.0 * (100.0 + 10.0));
        state[0] = State::Done(0.5);
        assert_eq!(seconds_left(STEPS, &state), 100.0 + 10.0);
    }

    #[test]
    fn minutes_are_rounded() {
        assert_eq!(words(20.0), "less than a minute left");
        assert_eq!(words(200.0), "about 3 min left");
    }
}
