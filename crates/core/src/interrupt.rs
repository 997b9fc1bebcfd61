//! Stopping work that is under way.

use std::cell::Cell;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::{Error, ErrorCode, Result};
use crate::fallible::vec_with_room;

/// Says whether somebody wants work to stop. [`Interrupt::check`] asks it about once for each
/// millisecond of computing, from any thread that computes.
pub trait AbortSignal: Send + Sync {
    /// True once the work is to stop, and from then on.
    fn is_set(&self) -> bool;

    /// Operations between two questions: [`PIECE`]. Fewer take longer; tests have small work cut into pieces by them.
    fn piece(&self) -> usize {
        PIECE
    }
}

impl AbortSignal for AtomicBool {
    fn is_set(&self) -> bool {
        self.load(Ordering::Relaxed)
    }
}

/// Runs within a load, for instance, stop with it.
impl AbortSignal for Interrupt {
    fn is_set(&self) -> bool {
        self.check().is_err()
    }

    fn piece(&self) -> usize {
        self.piece
    }
}

/// What may stop a load or a run: the caller's signal, and a deadline. Clones stop together.
///
/// Whatever computes for longer than a millisecond calls [`Interrupt::check`] on the way.
#[derive(Clone)]
pub struct Interrupt {
    abort: Option<Arc<dyn AbortSignal>>,
    deadline: Option<Deadline>,
    piece: usize,
}

impl Default for Interrupt {
    fn default() -> Interrupt {
        Interrupt::NEVER
    }
}

#[derive(Clone, Copy)]
struct Deadline {
    clock: fn() -> f64,
    end: f64,
    seconds: f64,
}

impl Interrupt {
    /// An interrupt that never stops anything.
    pub const NEVER: Interrupt = Interrupt {
        abort: None,
        deadline: None,
        piece: PIECE,
    };

    /// An interrupt that stops work once `abort` is set.
    pub fn on(abort: Option<Arc<dyn AbortSignal>>) -> Interrupt {
        Interrupt {
            piece: abort.as_ref().map_or(PIECE, |a| a.piece().max(1)),
            abort,
            deadline: None,
        }
    }

    /// This interrupt with a deadline in `seconds` from now by `clock`, unless its own deadline is earlier.
    #[must_use]
    pub fn within(self, seconds: Option<f64>, clock: fn() -> f64) -> Interrupt {
        let deadline = seconds.filter(|s| s.is_finite()).map(|seconds| Deadline {
            clock,
            end: clock() + seconds,
            seconds,
        });
        let deadline = match (self.deadline, deadline) {
            (Some(old), Some(new)) if old.end <= new.end => Some(old),
            (old, new) => new.or(old),
        };
        Interrupt { deadline, ..self }
    }

    /// Whether anything can stop the work.
    pub fn is_possible(&self) -> bool {
        self.abort.is_some() || self.deadline.is_some()
    }

    /// Asks whether the work is to stop.
    ///
    /// # Errors
    /// `Aborted` if it is.
    pub fn check(&self) -> Result<()> {
        if self.abort.as_ref().is_some_and(|a| a.is_set()) {
            return Err(Error::new(
                ErrorCode::Aborted,
                "the caller aborted the work",
            ));
        }
        match self.deadline {
            Some(deadline) if (deadline.clock)() >= deadline.end => Err(deadline.passed()),
            _ => Ok(()),
        }
    }
}

impl Deadline {
    #[cold]
    fn passed(&self) -> Error {
        Error::new(ErrorCode::Aborted, "the work took too long")
            .with_expected(format!("at most {} seconds", self.seconds))
    }
}

impl fmt::Debug for Interrupt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let deadline = self.deadline.map(|d| d.end);
        let abort = self.abort.as_ref().map(|a| a.is_set());
        write!(f, "Interrupt(abort {abort:?}, deadline {deadline:?})")
    }
}

/// Operations between two looks at an interrupt: half a millisecond on a machine that takes a nanosecond for each.
/// Portable code in a browser takes up to ten, so that even there a look comes every few milliseconds; a look costs
/// less than 100 ns.
pub const PIECE: usize = 1 << 19;

/// Items of a piece are a multiple of this where a piece has so many: pieces of an output then begin at cache lines
/// of their own, and end with whole vectors.
const WHOLE: usize = 64;

/// `FnMut(Range<usize>) -> Result<()>` with nothing else in its table of functions: there is one for each kernel.
trait Work {
    fn piece(&mut self, items: Range<usize>) -> Result<()>;
}

impl<F: FnMut(Range<usize>) -> Result<()>> Work for F {
    fn piece(&mut self, items: Range<usize>) -> Result<()> {
        self(items)
    }
}

/// Counts the operations of long work, and looks at an interrupt once for every [`PIECE`] of them.
///
/// Costs are operations that take about a nanosecond: an addition and a multiplication, eight copied bytes. They need
/// not be exact; one that does not fit its type saturates.
#[derive(Debug)]
pub struct Meter<'a> {
    interrupt: &'a Interrupt,
    piece: usize,
    /// Operations since the last look.
    spent: Cell<usize>,
}

impl<'a> Meter<'a> {
    /// A meter that has counted nothing.
    pub fn new(interrupt: &'a Interrupt) -> Meter<'a> {
        Meter {
            interrupt,
            piece: interrupt.piece,
            spent: Cell::new(0),
        }
    }

    /// Operations that are done without a look: [`PIECE`], but for tests.
    pub fn piece(&self) -> usize {
        self.piece
    }

    /// What may stop the work.
    pub fn interrupt(&self) -> &'a Interrupt {
        self.interrupt
    }

    /// Asks whether the work is to stop.
    ///
    /// # Errors
    /// `Aborted` if it is.
    pub fn check(&self) -> Result<()> {
        self.spent.set(0);
        self.interrupt.check()
    }

    /// Counts operations that are about to be done, and asks once for every [`PIECE`] of them whether the work is to
    /// stop.
    ///
    /// # Errors
    /// `Aborted` if it is.
    #[inline]
    pub fn spend(&self, cost: usize) -> Result<()> {
        let spent = self.spent.get().saturating_add(cost);
        self.spent.set(spent);
        match spent < self.piece {
            true => Ok(()),
            false => self.check(),
        }
    }

    /// Calls `work` with ranges that together are `0..items`, in order, and counts `cost` operations for each item.
    /// A range of more than one item has at most [`PIECE`] operations; an item that has more counts them itself, too.
    ///
    /// # Errors
    /// Those of `work`, and `Aborted` where the work is to stop.
    #[inline]
    pub fn pieces(
        &self,
        items: usize,
        cost: usize,
        mut work: impl FnMut(Range<usize>) -> Result<()>,
    ) -> Result<()> {
        let whole = items.saturating_mul(cost.max(1));
        if whole >= self.piece || items == 0 {
            return self.walk(items, cost, &mut work);
        }
        self.spend(whole)?;
        work(0..items)
    }

    /// [`Meter::pieces`] for work that is not called from an inner loop: it is compiled once, behind a pointer.
    ///
    /// # Errors
    /// As [`Meter::pieces`].
    pub fn long_pieces(
        &self,
        items: usize,
        cost: usize,
        mut work: impl FnMut(Range<usize>) -> Result<()>,
    ) -> Result<()> {
        self.walk(items, cost, &mut work)
    }

    // The loop itself is compiled once for all work.
    #[inline(never)]
    fn walk(&self, items: usize, cost: usize, work: &mut dyn Work) -> Result<()> {
        let cost = cost.max(1);
        let whole = items.saturating_mul(cost);
        if whole < self.piece && items > 0 {
            self.spend(whole)?;
            return work.piece(0..items);
        }
        let most = self.whole_items(items, cost);
        let mut rest = 0..items;
        while !rest.is_empty() {
            let piece = rest.start..rest.start + most.min(rest.len());
            self.spend(cost.saturating_mul(piece.len()))?;
            rest.start = piece.end;
            work.piece(piece)?;
        }
        Ok(())
    }

    /// The items of a piece where up to `wanted` are asked for, at a cost for each: at least one, at most
    /// [`PIECE`] operations, and whole cache lines of an output where there are so many.
    pub fn whole_items(&self, wanted: usize, cost: usize) -> usize {
        let most = self.piece / cost.max(1);
        let lines = wanted.checked_next_multiple_of(WHOLE);
        match most.min(lines.unwrap_or(usize::MAX)) {
            most @ WHOLE.. if wanted >= WHOLE => most - most % WHOLE,
            _ => most.min(wanted).max(1),
        }
    }

    /// All elements of an iterator, in a vector that is reserved fallibly; `cost` is that of one.
    ///
    /// # Errors
    /// `Limit` where memory is short, `Aborted` where the work is to stop.
    pub fn collect<T>(
        &self,
        mut elements: impl ExactSizeIterator<Item = T>,
        cost: usize,
    ) -> Result<Vec<T>> {
        let len = elements.len();
        let mut all = vec_with_room(len)?;
        self.pieces(len, cost, |piece| {
            all.extend(elements.by_ref().take(piece.len()));
            Ok(())
        })?;
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_stops_every_clone() {
        let flag = Arc::new(AtomicBool::new(false));
        let interrupt = Interrupt::on(Some(flag.clone()));
        let clone = interrupt.clone();
        assert!(interrupt.check().is_ok() && interrupt.is_possible());
        flag.store(true, Ordering::Relaxed);
        for stopped in [interrupt, clone] {
            let error = stopped.check().unwrap_err();
            assert_eq!(error.code(), ErrorCode::Aborted);
        }
    }

    #[test]
    fn the_earlier_of_two_deadlines_counts() {
        fn clock() -> f64 {
            7.0
        }
        let at = |first, second| {
            let interrupt = Interrupt::NEVER.within(Some(first), clock);
            interrupt.within(second, clock).check().is_ok()
        };
        assert!(at(1.0, None) && at(1.0, Some(2.0)));
        assert!(!at(0.0, Some(2.0)) && !at(2.0, Some(0.0)) && !at(-1.0, None));
        assert!(at(f64::INFINITY, Some(f64::INFINITY)));
    }

    /// How often a signal was asked.
    #[derive(Default)]
    struct Asked(std::sync::atomic::AtomicUsize);

    impl AbortSignal for Asked {
        fn is_set(&self) -> bool {
            self.0.fetch_add(1, Ordering::Relaxed);
            false
        }
    }

    #[test]
    fn a_look_comes_once_for_each_piece_of_the_cost() {
        let asked = Arc::new(Asked::default());
        let interrupt = Interrupt::on(Some(asked.clone()));
        let meter = Meter::new(&interrupt);
        let looks = || asked.0.swap(0, Ordering::Relaxed);
        for _ in 0..PIECE {
            meter.spend(8).unwrap();
        }
        assert_eq!(looks(), 8);
        meter.spend(usize::MAX).unwrap();
        assert_eq!(looks(), 1);
        let covered = |items: usize, cost: usize| {
            let (mut next, mut longest) = (0, 0);
            let whole = meter.pieces(items, cost, |piece| {
                assert_eq!(piece.start, next);
                (next, longest) = (piece.end, longest.max(piece.len()));
                Ok(())
            });
            whole.unwrap();
            assert_eq!(next, items);
            assert!(longest <= 1 || longest.saturating_mul(cost) <= PIECE);
        };
        covered(10 * PIECE, 1);
        assert!((9..=11).contains(&looks()));
        covered(1000, PIECE);
        assert_eq!(looks(), 1000);
        covered(3, usize::MAX);
        covered(0, 5);
        covered(PIECE, 3);
    }

    #[test]
    fn what_is_stopped_begins_no_more_pieces() {
        let flag = Arc::new(AtomicBool::new(false));
        let interrupt = Interrupt::on(Some(flag.clone()));
        let mut begun = 0;
        let stopped = Meter::new(&interrupt).pieces(100, PIECE, |_| {
            begun += 1;
            flag.store(begun == 3, Ordering::Relaxed);
            Ok(())
        });
        assert_eq!(stopped.unwrap_err().code(), ErrorCode::Aborted);
        assert_eq!(begun, 3);
    }
}
