//! The thread on which the kernels of a queued backend run, one after another, while Kilim goes on.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};

use crate::guest::Failure;

type Job = Box<dyn FnOnce() + Send>;

/// Jobs in the order in which they came. Dropping it waits for all of them.
pub struct Queue {
    jobs: Option<Sender<Job>>,
    /// How many were given.
    given: Mutex<u64>,
    done: Arc<Done>,
    thread: Option<JoinHandle<()>>,
}

/// How many jobs have ended.
#[derive(Default)]
struct Done(Mutex<u64>, Condvar);

impl Queue {
    pub fn start() -> Result<Queue, Failure> {
        let (jobs, next) = channel::<Job>();
        let done = Arc::new(Done::default());
        let ended = done.clone();
        let work = move || {
            for job in next {
                // Whoever gave the job hears of its failures; a panic must not end the thread that others wait for.
                let _ = catch_unwind(AssertUnwindSafe(job));
                *ended.0.lock().unwrap_or_else(PoisonError::into_inner) += 1;
                ended.1.notify_all();
            }
        };
        let thread = Builder::new().name("kilim-backend".to_string()).spawn(work);
        let thread =
            thread.map_err(|e| Failure::device(format!("a thread cannot be started: {e}")))?;
        Ok(Queue {
            jobs: Some(jobs),
            given: Mutex::new(0),
            done,
            thread: Some(thread),
        })
    }

    /// Has the thread do this when everything that was given before is done.
    pub fn push(&self, job: Job) -> Result<(), Failure> {
        let mut given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        let sent = self.jobs.as_ref().map(|jobs| jobs.send(job));
        match sent {
            Some(Ok(())) => {
                *given += 1;
                Ok(())
            }
            _ => Err(Failure::device("the thread of the backend has ended")),
        }
    }

    /// How many jobs were given until now.
    pub fn given(&self) -> u64 {
        *self.given.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether so many jobs have ended.
    pub fn is_done(&self, jobs: u64) -> bool {
        *self.done.0.lock().unwrap_or_else(PoisonError::into_inner) >= jobs
    }

    /// Waits until everything that was given before has ended.
    pub fn drain(&self) {
        let given = self.given();
        let mut done = self.done.0.lock().unwrap_or_else(PoisonError::into_inner);
        while *done < given {
            done = self
                .done
                .1
                .wait(done)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
