//! Stopping work that is under way.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::{Error, ErrorCode, Result};

/// Says whether somebody wants work to stop. [`Interrupt::check`] asks it about once for each
/// millisecond of computing, from any thread that computes.
pub trait AbortSignal: Send + Sync {
    /// True once the work is to stop, and from then on.
    fn is_set(&self) -> bool;
}

impl AbortSignal for AtomicBool {
    fn is_set(&self) -> bool {
        self.load(Ordering::Relaxed)
    }
}

/// What may stop a load or a run: the caller's signal, and a deadline. Clones stop together.
///
/// Whatever computes for longer than a millisecond calls [`Interrupt::check`] on the way.
#[derive(Clone, Default)]
pub struct Interrupt {
    abort: Option<Arc<dyn AbortSignal>>,
    deadline: Option<Deadline>,
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
    };

    /// An interrupt that stops work once `abort` is set.
    pub fn on(abort: Option<Arc<dyn AbortSignal>>) -> Interrupt {
        Interrupt {
            abort,
            deadline: None,
        }
    }

    /// The same interrupt with a deadline in `seconds` from now by `clock`, if that is before the
    /// deadline it has.
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
        Interrupt {
            abort: self.abort,
            deadline,
        }
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
}
