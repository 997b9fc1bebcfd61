//! One pool of threads for the process. Whoever has work does it, and threads of the pool that have nothing to do
//! join: nobody waits for a thread that has not begun.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
#[cfg(not(target_family = "wasm"))]
use std::sync::Condvar;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
#[cfg(not(target_family = "wasm"))]
use std::time::{Duration, Instant};

/// How long a thread without work looks for some before it sleeps: nodes of a run follow each other in less.
#[cfg(not(target_family = "wasm"))]
const AWAKE: Duration = Duration::from_micros(60);

/// Operations that threads must have missed before they are woken: about ten microseconds of work. It takes longer until a thread that was woken
/// comes.
const WAKE: usize = 1 << 15;

/// Turns of a loop that waits before it lets another thread have the core.
const TURNS: usize = 2000;

/// Threads that join the work of others.
pub struct Pool {
    queue: Mutex<Queue>,
    #[cfg(not(target_family = "wasm"))]
    wake: Condvar,
    /// Jobs that were ever offered: what threads that wait look at, without the lock.
    offered: AtomicUsize,
}

struct Queue {
    offers: Vec<Offer>,
    /// Operations that threads would have done since the last time that some were woken, had they come.
    missed: usize,
    #[cfg(not(target_family = "wasm"))]
    workers: usize,
    #[cfg(not(target_family = "wasm"))]
    sleeping: usize,
}

/// A job that threads may join.
struct Offer {
    job: *const Job,
    /// The number that the next thread gets.
    next: usize,
    /// One more than the last number.
    end: usize,
    /// Operations of each thread.
    share: usize,
}

// SAFETY: a job lives and may be shared until its owner has taken the offer away, see `Pool::run`.
unsafe impl Send for Offer {}

type Work<'a> = dyn Fn(usize) + Sync + 'a;

struct Job {
    work: *const Work<'static>,
    /// Threads of the pool that are at work.
    inside: AtomicUsize,
    /// What a thread of the pool panicked with.
    panic: Mutex<Option<Box<dyn Any + Send>>>,
}

/// The pool of the process.
pub fn of_process() -> &'static Pool {
    static POOL: OnceLock<Pool> = OnceLock::new();
    POOL.get_or_init(Pool::new)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing panics while it holds a lock.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Pool {
    const fn new() -> Pool {
        Pool {
            queue: Mutex::new(Queue {
                offers: Vec::new(),
                missed: 0,
                #[cfg(not(target_family = "wasm"))]
                workers: 0,
                #[cfg(not(target_family = "wasm"))]
                sleeping: 0,
            }),
            #[cfg(not(target_family = "wasm"))]
            wake: Condvar::new(),
            offered: AtomicUsize::new(0),
        }
    }

    /// Has at least so many threads from now on, or as many as the system gives.
    #[cfg(not(target_family = "wasm"))]
    pub fn grow(&'static self, workers: usize) {
        let mut queue = lock(&self.queue);
        // Room for the jobs of many sessions, so that offering one allocates nothing.
        let room = workers.max(16).saturating_sub(queue.offers.len());
        queue.offers.reserve(room);
        while queue.workers < workers {
            let name = format!("kilim-{}", queue.workers + 1);
            let spawned = thread::Builder::new().name(name).spawn(|| self.serve());
            if spawned.is_err() {
                return;
            }
            queue.workers += 1;
        }
    }

    /// Calls `work` with 0 on this thread, and with other numbers below `threads` on those threads of the pool that
    /// come by meanwhile, each number once at most. Returns when all calls have. `share` is what each has to do, in operations, about: for
    /// little of it alone no thread is woken.
    ///
    /// # Panics
    /// Where `work` does on any thread.
    pub fn run(&self, threads: usize, share: usize, work: &Work<'_>) {
        let work: *const Work<'_> = work;
        let job = Job {
            // SAFETY: only the lifetime changes. The job is followed by threads that are `inside`, and `Joined` waits
            // for them before this function is left, by a panic, too.
            work: unsafe { std::mem::transmute::<*const Work<'_>, *const Work<'static>>(work) },
            inside: AtomicUsize::new(0),
            panic: Mutex::new(None),
        };
        self.offer(&job, threads, share);
        let joined = Joined {
            pool: self,
            job: &job,
        };
        // SAFETY: this is the borrow that the caller gave.
        unsafe { (*work)(0) };
        drop(joined);
        if let Some(panic) = lock(&job.panic).take() {
            resume_unwind(panic);
        }
    }

    fn offer(&self, job: &Job, threads: usize, share: usize) {
        let mut queue = lock(&self.queue);
        queue.offers.push(Offer {
            job,
            next: 1,
            end: threads,
            share,
        });
        self.offered.fetch_add(1, Ordering::Release);
        if queue.missed.saturating_add(share) >= WAKE {
            queue.missed = 0;
            self.wake(queue, threads.saturating_sub(1));
        }
    }

    #[cfg(not(target_family = "wasm"))]
    fn wake(&self, queue: MutexGuard<Queue>, threads: usize) {
        let wanted = queue.sleeping.min(threads);
        drop(queue);
        (0..wanted).for_each(|_| self.wake.notify_one());
    }

    #[cfg(target_family = "wasm")]
    fn wake(&self, queue: MutexGuard<Queue>, threads: usize) {
        drop(queue);
        super::workers::call(threads);
    }

    /// What a thread of the pool does.
    #[cfg(not(target_family = "wasm"))]
    fn serve(&self) {
        loop {
            self.next().join();
        }
    }

    /// Joins jobs until there was none for so many turns of a loop. Whether there was one.
    #[cfg(target_family = "wasm")]
    pub fn help(&self, turns: usize) -> bool {
        let mut joined = false;
        loop {
            let offered = self.offered.load(Ordering::Acquire);
            let found = lock(&self.queue).take();
            if let Some(taken) = found {
                taken.join();
                joined = true;
                continue;
            }
            let mut left = turns;
            while self.offered.load(Ordering::Acquire) == offered {
                if left == 0 {
                    return joined;
                }
                left -= 1;
                std::hint::spin_loop();
            }
        }
    }

    /// Waits for a job.
    #[cfg(not(target_family = "wasm"))]
    fn next(&self) -> Taken {
        let mut since = Instant::now();
        let mut turns = 0;
        loop {
            let offered = self.offered.load(Ordering::Acquire);
            if let Some(found) = lock(&self.queue).take() {
                return found;
            }
            while self.offered.load(Ordering::Acquire) == offered {
                std::hint::spin_loop();
                turns += 1;
                if turns % 64 == 0 && since.elapsed() >= AWAKE {
                    if let Some(found) = self.sleep() {
                        return found;
                    }
                    since = Instant::now();
                }
            }
        }
    }

    /// Sleeps until there is an offer. It may be gone again.
    #[cfg(not(target_family = "wasm"))]
    fn sleep(&self) -> Option<Taken> {
        let mut queue = lock(&self.queue);
        if let Some(found) = queue.take() {
            return Some(found);
        }
        queue.sleeping += 1;
        let mut queue = match self.wake.wait(queue) {
            Ok(queue) => queue,
            Err(poisoned) => poisoned.into_inner(),
        };
        queue.sleeping -= 1;
        queue.take()
    }
}

impl Queue {
    /// Takes a job back, and counts what threads have missed of it.
    fn retract(&mut self, job: *const Job) {
        let Some(at) = self.offers.iter().position(|o| std::ptr::eq(o.job, job)) else {
            return;
        };
        let Offer {
            next, end, share, ..
        } = self.offers.remove(at);
        self.missed = match end.saturating_sub(next) {
            0 => 0,
            lacking => self.missed.saturating_add(share.saturating_mul(lacking)),
        };
    }

    /// Joins the job that the fewest threads have joined.
    fn take(&mut self) -> Option<Taken> {
        let open = self.offers.iter_mut().filter(|o| o.next < o.end);
        let offer = open.min_by_key(|o| o.next)?;
        let number = offer.next;
        offer.next += 1;
        // SAFETY: an offer's job lives as long as the offer is in the queue, which is locked.
        unsafe { &*offer.job }
            .inside
            .fetch_add(1, Ordering::Relaxed);
        Some(Taken {
            job: offer.job,
            number,
        })
    }
}

/// A job that a thread has joined.
struct Taken {
    job: *const Job,
    number: usize,
}

impl Taken {
    /// Does the thread's part.
    fn join(self) {
        // SAFETY: `take` counted this thread in, so that the job's owner waits for it.
        let job = unsafe { &*self.job };
        // SAFETY: the owner keeps the work, and what that borrows, until this thread is counted out.
        let work = unsafe { &*job.work };
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| work(self.number))) {
            lock(&job.panic).get_or_insert(panic);
        }
        // From here on the job may be gone.
        job.inside.fetch_sub(1, Ordering::Release);
    }
}

/// Takes a job back and waits for the threads inside, however the owner's own part ended.
struct Joined<'a> {
    pool: &'a Pool,
    job: &'a Job,
}

impl Drop for Joined<'_> {
    fn drop(&mut self) {
        lock(&self.pool.queue).retract(self.job);
        let mut turns = 0;
        while self.job.inside.load(Ordering::Acquire) > 0 {
            match turns < TURNS {
                true => std::hint::spin_loop(),
                false => thread::yield_now(),
            }
            turns += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    /// Enough to wake threads.
    const ANY: usize = usize::MAX;

    #[test]
    fn every_number_is_called_once_at_most_and_all_calls_end() {
        let pool = of_process();
        pool.grow(3);
        for round in 0..2000 {
            let threads = 1 + round % 5;
            let calls: Vec<_> = (0..threads).map(|_| AtomicUsize::new(0)).collect();
            let inside = AtomicUsize::new(0);
            pool.run(threads, ANY, &|number| {
                inside.fetch_add(1, Ordering::Relaxed);
                calls[number].fetch_add(1, Ordering::Relaxed);
                inside.fetch_sub(1, Ordering::Relaxed);
            });
            assert_eq!(inside.load(Ordering::Relaxed), 0);
            assert_eq!(calls[0].load(Ordering::Relaxed), 1);
            assert!(calls.iter().all(|c| c.load(Ordering::Relaxed) <= 1));
        }
    }

    #[test]
    fn threads_that_sleep_are_woken() {
        let pool = of_process();
        pool.grow(1);
        thread::sleep(20 * AWAKE);
        let came = AtomicBool::new(false);
        pool.run(64, ANY, &|number| {
            if number > 0 {
                came.store(true, Ordering::Relaxed);
            }
            let begun = Instant::now();
            while !came.load(Ordering::Relaxed) && begun.elapsed() < Duration::from_secs(20) {
                thread::yield_now();
            }
        });
        assert!(came.into_inner());
    }

    #[test]
    fn threads_that_have_missed_enough_are_woken() {
        let pool: &'static Pool = Box::leak(Box::new(Pool::new()));
        pool.grow(1);
        while lock(&pool.queue).sleeping == 0 {
            thread::yield_now();
        }
        let came = AtomicBool::new(false);
        for missed in [WAKE / 4, WAKE / 2, WAKE / 4 * 3] {
            pool.run(2, WAKE / 4, &|number| {
                came.fetch_or(number > 0, Ordering::Relaxed);
            });
            assert_eq!(lock(&pool.queue).missed, missed);
        }
        assert!(!came.load(Ordering::Relaxed), "it was woken for little");
        pool.run(2, WAKE / 4, &|number| {
            came.fetch_or(number > 0, Ordering::Relaxed);
            let begun = Instant::now();
            while !came.load(Ordering::Relaxed) && begun.elapsed() < Duration::from_secs(20) {
                thread::yield_now();
            }
        });
        assert!(came.into_inner());
        assert_eq!(lock(&pool.queue).missed, 0);
    }

    #[test]
    fn callers_on_many_threads_and_calls_within_calls_end() {
        let pool = of_process();
        pool.grow(3);
        let sum = AtomicUsize::new(0);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..500 {
                        let own = AtomicUsize::new(0);
                        pool.run(4, ANY, &|outer| {
                            if outer == 0 {
                                pool.run(4, ANY, &|inner| {
                                    own.fetch_add(usize::from(inner == 0), Ordering::Relaxed);
                                });
                            }
                        });
                        sum.fetch_add(own.into_inner(), Ordering::Relaxed);
                    }
                });
            }
        });
        assert_eq!(sum.into_inner(), 2000);
    }

    #[test]
    fn a_panic_reaches_the_caller_after_all_have_ended() {
        let pool = of_process();
        pool.grow(2);
        for on_caller in [false, true] {
            let (inside, came) = (AtomicUsize::new(0), AtomicBool::new(false));
            let panicked = catch_unwind(AssertUnwindSafe(|| {
                pool.run(3, ANY, &|number| {
                    inside.fetch_add(1, Ordering::Relaxed);
                    came.fetch_or(number > 0, Ordering::Relaxed);
                    let begun = Instant::now();
                    while !came.load(Ordering::Relaxed) && begun.elapsed().as_secs() < 20 {
                        thread::yield_now();
                    }
                    inside.fetch_sub(1, Ordering::Relaxed);
                    assert!(on_caller != (number == 0), "expected by the test");
                });
            }));
            assert!(panicked.is_err(), "on the caller: {on_caller}");
            assert_eq!(inside.into_inner(), 0);
        }
        pool.run(3, ANY, &|_| {});
    }
}
