//! Timing several ways of doing the same thing, in turns: a machine that slows down is no way's fault.

use kilim_core::Result;

/// How much more time the way that was taken may need than the fastest, as a share; more is a wrong choice.
pub const TOLERATED: f64 = 0.05;
/// How often a choice that looks wrong is measured again before it is called so.
const AGAIN: usize = 3;

/// One way of doing it.
pub(super) struct Lane<'a> {
    run: Box<dyn FnMut() -> Result<()> + 'a>,
    /// Runs in a sample.
    times: u32,
    /// Seconds of a run, by turns.
    samples: Vec<f64>,
}

impl<'a> Lane<'a> {
    /// A way whose sample takes `sample` seconds or a run, whichever is more. It has run before.
    ///
    /// # Errors
    /// Those of `run`.
    pub fn new(
        mut run: impl FnMut() -> Result<()> + 'a,
        clock: &dyn Fn() -> f64,
        sample: f64,
    ) -> Result<Lane<'a>> {
        let start = clock();
        let mut times = 0;
        while times == 0 || (clock() - start < sample && times < u32::MAX) {
            run()?;
            times += 1;
        }
        Ok(Lane {
            run: Box::new(run),
            times,
            samples: Vec::new(),
        })
    }

    fn sample(&mut self, clock: &dyn Fn() -> f64) -> Result<()> {
        let start = clock();
        for _ in 0..self.times {
            (self.run)()?;
        }
        self.samples.push((clock() - start) / f64::from(self.times));
        Ok(())
    }

    /// The median of the seconds of a run.
    pub fn seconds(&self) -> f64 {
        median(self.samples.clone())
    }
}

/// How much more time the first lane takes than the fastest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Loss {
    /// The number of the fastest.
    pub to: usize,
    /// What the time is longer by, as a share of the fastest's.
    pub share: f64,
}

/// Times the lanes in so many turns; in more where the first one, which was chosen, looks wrong by turns or by all samples.
///
/// # Errors
/// Those of the lanes.
pub(super) fn take(lanes: &mut [Lane], turns: usize, clock: &dyn Fn() -> f64) -> Result<Loss> {
    for _ in 0..=AGAIN {
        for turn in 0..turns.max(1) {
            // Each has every place in a turn, and so every other lane's data in the caches.
            for i in 0..lanes.len() {
                let next = (turn + i) % lanes.len();
                lanes[next].sample(clock)?;
            }
        }
        let fastest = lanes
            .iter()
            .map(Lane::seconds)
            .fold(f64::INFINITY, f64::min);
        let close = |lane: &Lane| lane.seconds() <= fastest * (1.0 + TOLERATED);
        if loss(lanes).share <= TOLERATED && lanes.first().is_none_or(close) {
            break;
        }
    }
    Ok(loss(lanes))
}

/// The loss as the median of what each turn tells.
fn loss(lanes: &[Lane]) -> Loss {
    let mut loss = Loss { to: 0, share: 0.0 };
    for (to, other) in lanes.iter().enumerate().skip(1) {
        let turns = lanes[0].samples.iter().zip(&other.samples);
        let share = median(turns.map(|(first, other)| first / other).collect()) - 1.0;
        if share > loss.share {
            loss = Loss { to, share };
        }
    }
    loss
}

/// The middle of some numbers, the higher one of two; NaN of none.
fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers.get(numbers.len() / 2).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::{Cell, RefCell};

    /// A machine whose runs take the seconds that they are said to take.
    #[derive(Default)]
    struct Machine {
        now: Cell<f64>,
        runs: RefCell<Vec<usize>>,
    }

    impl Machine {
        /// What the lanes lose, lane `i` taking `seconds(i, run)` for its runs.
        fn loss(&self, lanes: usize, seconds: impl Fn(usize, usize) -> f64) -> Loss {
            *self.runs.borrow_mut() = vec![0; lanes];
            let clock = || self.now.get();
            let run = |i: usize| {
                let mut runs = self.runs.borrow_mut();
                self.now.set(self.now.get() + seconds(i, runs[i]));
                runs[i] += 1;
                Ok(())
            };
            let lane = |i| Lane::new(move || run(i), &clock, 0.0).expect("it runs");
            let mut lanes: Vec<_> = (0..lanes).map(lane).collect();
            take(&mut lanes, 5, &clock).expect("they run")
        }
    }

    #[test]
    fn a_wrong_choice_is_found_and_measured_again() {
        let machine = Machine::default();
        let loss = machine.loss(3, |i, _| [1.2, 1.0, 1.5][i]);
        assert!((loss.share - 0.2).abs() < 1e-9 && loss.to == 1, "{loss:?}");
        assert_eq!(*machine.runs.borrow(), vec![1 + 5 * (1 + AGAIN); 3]);
    }

    #[test]
    fn a_right_choice_is_measured_once() {
        let machine = Machine::default();
        let loss = machine.loss(2, |i, _| [1.0, 1.1][i]);
        assert_eq!(loss, Loss { to: 0, share: 0.0 });
        assert_eq!(*machine.runs.borrow(), vec![6; 2]);
        let close = machine.loss(2, |i, _| [1.04, 1.0][i]).share;
        assert!(close > 0.03 && close < TOLERATED, "{close}");
    }

    /// A machine that becomes slower slows both: what counts is a turn.
    #[test]
    fn noise_is_no_wrong_choice() {
        let machine = Machine::default();
        let slower = |i: usize, run: usize| [1.0, 1.02][i] * (1.0 + run as f64);
        assert!(machine.loss(2, slower).share < 1e-9);
        // An interruption of the first turns is outvoted by those that follow.
        let interrupted = |i: usize, run: usize| match (i, run) {
            (0, 1..=4) => 2.0,
            _ => 1.0,
        };
        assert!(machine.loss(2, interrupted).share < 1e-9);
    }

    #[test]
    fn short_runs_are_repeated() {
        let now = Cell::new(0.0);
        let run = || {
            now.set(now.get() + 0.25);
            Ok(())
        };
        let clock = || now.get();
        let mut lane = Lane::new(run, &clock, 1.0).expect("it runs");
        assert_eq!(lane.times, 4);
        lane.sample(&clock).expect("it runs");
        assert_eq!(lane.samples, [0.25]);
        assert_eq!(lane.seconds(), 0.25);
    }
}
