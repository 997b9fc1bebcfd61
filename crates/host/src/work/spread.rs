//! Pieces of work, each on one of the threads.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use kilim_core::{Error, Result};

use super::CpuRun;
use crate::threads::{Threads, pool};

/// Pieces that a thread has of its own: enough that one which is slow or comes late is not waited for long.
const PIECES: usize = 4;

/// The pieces that a thread begins with; others help when theirs are done. Alone in its cache line.
#[repr(align(128))]
struct Own {
    next: AtomicUsize,
    end: usize,
}

/// The error of the first piece that has one.
struct Failure {
    /// The number of that piece.
    piece: AtomicUsize,
    error: Mutex<Option<Error>>,
}

impl Failure {
    fn set(&self, piece: usize, error: Error) {
        let mut first = self.error.lock().unwrap_or_else(PoisonError::into_inner);
        if piece < self.piece.load(Ordering::Relaxed) {
            self.piece.store(piece, Ordering::Relaxed);
            *first = Some(error);
        }
    }
}

/// The part of `thread` where so many pieces are shared equally.
fn part(pieces: usize, threads: usize, thread: usize) -> Range<usize> {
    let at = |thread: usize| pieces / threads * thread + thread.min(pieces % threads);
    at(thread)..at(thread + 1)
}

/// Calls `work` with ranges that together are `0..items`, on up to `threads` threads, each a worker of its own with a
/// number below `threads`, which does one piece at a time. The pieces depend on the items, their cost and the number
/// of threads, and on nothing that differs from run to run. `threads` is at most [`Threads::MOST`].
///
/// # Errors
/// That of the first piece that fails. Pieces behind it may be left out.
#[inline(never)]
pub fn spread(
    threads: usize,
    items: usize,
    cost: usize,
    caller: &CpuRun,
    work: &(dyn Fn(Range<usize>, &CpuRun) -> Result<()> + Sync),
) -> Result<()> {
    let size = caller.whole_items(items.div_ceil(threads * PIECES), cost);
    let pieces = items.div_ceil(size);
    let own: [Own; Threads::MOST] = std::array::from_fn(|thread| {
        let Range { start, end } = match thread < threads {
            true => part(pieces, threads, thread),
            false => 0..0,
        };
        Own {
            next: AtomicUsize::new(start),
            end,
        }
    });
    let failure = Failure {
        piece: AtomicUsize::new(usize::MAX),
        error: Mutex::new(None),
    };
    let interrupt = caller.interrupt();
    let share = items.saturating_mul(cost) / threads;
    pool::of_process().run(threads, share, &|number| {
        let cpu = CpuRun::of_pool(number, interrupt);
        for from in 0..threads {
            let own = &own[(number + from) % threads];
            loop {
                let piece = own.next.fetch_add(1, Ordering::Relaxed);
                if piece >= own.end || piece > failure.piece.load(Ordering::Relaxed) {
                    break;
                }
                let range = piece * size..items.min((piece + 1) * size);
                let spent = cpu.spend(cost.saturating_mul(range.len()));
                if let Err(error) = spent.and_then(|()| work(range, &cpu)) {
                    failure.set(piece, error);
                }
            }
        }
    });
    let error = failure.error.into_inner();
    match error.unwrap_or_else(PoisonError::into_inner) {
        Some(error) => Err(error),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kilim_core::{ErrorCode, Interrupt};

    fn caller() -> CpuRun<'static> {
        CpuRun::new(Threads::SINGLE, &Interrupt::NEVER)
    }

    #[test]
    fn parts_are_all_pieces_and_about_equal() {
        for pieces in [0, 1, 5, 64, 1000, usize::MAX] {
            for threads in [1, 3, 64] {
                let mut end = 0;
                for thread in 0..threads {
                    let own = part(pieces, threads, thread);
                    assert_eq!(own.start, end);
                    assert!(own.len().abs_diff(pieces / threads) <= 1);
                    end = own.end;
                }
                assert_eq!(end, pieces);
            }
        }
    }

    #[test]
    fn every_item_is_done_once() {
        pool::of_process().grow(3);
        for items in [1, 2, 3, 63, 64, 65, 1000, 12345] {
            for threads in [1, 2, 3, 4, 64] {
                let done: Vec<_> = (0..items).map(|_| AtomicUsize::new(0)).collect();
                let all = spread(threads, items, 100, &caller(), &|range, cpu| {
                    assert!(cpu.worker() < threads && cpu.threads() == 1);
                    range.for_each(|i| {
                        done[i].fetch_add(1, Ordering::Relaxed);
                    });
                    Ok(())
                });
                all.unwrap();
                assert!(done.iter().all(|d| d.load(Ordering::Relaxed) == 1));
            }
        }
    }

    #[test]
    fn the_first_error_is_given_whoever_finds_one_first() {
        pool::of_process().grow(3);
        for _ in 0..300 {
            let failed = spread(
                4,
                1000,
                1000,
                &caller(),
                &|range, _| match range.start >= 500 || range.contains(&300) {
                    true => Err(Error::new(
                        ErrorCode::InvalidValue,
                        format!("{}", range.start),
                    )),
                    false => Ok(()),
                },
            );
            let error = failed.unwrap_err();
            assert!(error.to_string().contains("252"), "{error}");
        }
    }
}
