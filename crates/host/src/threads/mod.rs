//! The threads that kernels compute on.

#[cfg(threads)]
pub(crate) mod pool;
#[cfg(all(threads, target_family = "wasm"))]
mod workers;

#[cfg(threads)]
use kilim_core::interrupt::PIECE;

#[cfg(all(threads, target_family = "wasm"))]
pub use workers::{help, set_workers};

/// The threads that the kernels of a context may spread their work over. The calling thread is one of them; the others
/// belong to a pool that all sessions of the process share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Threads {
    count: usize,
}

/// Operations that a thread should have at least, where pieces are as long as [`PIECE`]: handing work to a thread that
/// waits for it takes about a microsecond, to one that sleeps up to fifty.
#[cfg(threads)]
const SHARE: usize = 1 << 12;

/// The most threads where nobody asks for a number: few networks gain from more.
#[cfg(all(threads, not(target_family = "wasm")))]
const MOST_BY_DEFAULT: usize = 16;

impl Threads {
    /// The calling thread.
    pub const SINGLE: Threads = Threads { count: 1 };

    /// The most threads that work is spread over.
    pub const MOST: usize = 64;

    /// A pool of `asked` threads, from 1 to [`Threads::MOST`], or else of as many as the machine is likely to
    /// be fastest with: [`Threads::available`]. WebAssembly without shared memory has one.
    pub fn new(asked: Option<usize>) -> Threads {
        let count = asked.unwrap_or_else(Threads::available);
        Threads::on_this_target(count.clamp(1, Threads::MOST))
    }

    /// The machine's cores, as far as this process may use them, hardware threads of one core counted once; at most 16.
    #[cfg(all(threads, not(target_family = "wasm")))]
    pub fn available() -> usize {
        use std::sync::OnceLock;
        static COUNT: OnceLock<usize> = OnceLock::new();
        *COUNT.get_or_init(|| {
            let allowed = std::thread::available_parallelism().map_or(1, usize::from);
            let cores = num_cpus::get_physical().max(1);
            allowed.min(cores).min(MOST_BY_DEFAULT)
        })
    }

    /// The calling thread, and the workers that [`set_workers`] told of.
    #[cfg(all(threads, target_family = "wasm"))]
    pub fn available() -> usize {
        1 + workers::count()
    }

    /// The calling thread alone.
    #[cfg(not(threads))]
    pub fn available() -> usize {
        1
    }

    #[cfg(all(threads, not(target_family = "wasm")))]
    fn on_this_target(count: usize) -> Threads {
        if count > 1 {
            pool::of_process().grow(count - 1);
        }
        Threads { count }
    }

    #[cfg(target_family = "wasm")]
    fn on_this_target(count: usize) -> Threads {
        Threads {
            count: count.min(Threads::available()),
        }
    }

    /// The number of threads, the calling one included.
    pub fn count(&self) -> usize {
        self.count
    }

    /// How many of the threads work of so many independent items is worth, at so many operations for each. Where `piece`
    /// is shorter than [`PIECE`], as in tests, less work is shared.
    #[cfg(threads)]
    pub(crate) fn worth(self, items: usize, cost: usize, piece: usize) -> usize {
        if self.count == 1 {
            return 1;
        }
        let share = (piece / (PIECE / SHARE)).clamp(1, SHARE);
        let shares = items.saturating_mul(cost.max(1)) / share;
        self.count.min(items).min(shares).max(1)
    }

    /// The calling thread alone.
    #[cfg(not(threads))]
    pub(crate) fn worth(self, _items: usize, _cost: usize, _piece: usize) -> usize {
        1
    }
}

#[cfg(all(test, not(target_family = "wasm")))]
mod tests {
    use super::{PIECE, SHARE, Threads};

    #[test]
    fn small_work_has_few_threads() {
        let four = Threads { count: 4 };
        assert_eq!(four.worth(1000, 1, PIECE), 1);
        assert_eq!(four.worth(2, SHARE, PIECE), 2);
        assert_eq!(four.worth(3 * SHARE, 1, PIECE), 3);
        assert_eq!(four.worth(1, usize::MAX, PIECE), 1);
        assert_eq!(four.worth(0, usize::MAX, PIECE), 1);
        assert_eq!(four.worth(usize::MAX, usize::MAX, PIECE), 4);
        assert_eq!(four.worth(3, 1, 16), 3);
        assert_eq!(Threads::SINGLE.worth(usize::MAX, usize::MAX, PIECE), 1);
    }

    #[test]
    fn the_number_is_what_was_asked_for() {
        assert_eq!(Threads::new(Some(3)).count(), 3);
        assert_eq!(Threads::new(Some(0)), Threads::SINGLE);
        assert_eq!(Threads::new(Some(usize::MAX)).count(), Threads::MOST);
        assert!((1..=16).contains(&Threads::new(None).count()));
    }
}
