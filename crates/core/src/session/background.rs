//! Runs that the caller does not wait for.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender, TryRecvError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use super::{RunOptions, Session};
use crate::datum::Datum;
use crate::error::{Error, ErrorCode, Result};

type Outputs = Vec<(String, Datum)>;

/// A run under way; see [`Session::run_async`].
pub struct RunHandle {
    result: Receiver<Result<Outputs>>,
}

impl RunHandle {
    /// Waits for the run.
    ///
    /// # Errors
    /// As [`Session::run_data`]; `State` where the session was dropped before the run began.
    pub fn wait(self) -> Result<Outputs> {
        self.result.recv().unwrap_or_else(|_| Err(gone()))
    }

    /// The result if the run is done; it is given once.
    ///
    /// # Errors
    /// As [`RunHandle::wait`], and `State` where the result was given already.
    pub fn try_wait(&mut self) -> Option<Result<Outputs>> {
        match self.result.try_recv() {
            Ok(result) => Some(result),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => Some(Err(gone())),
        }
    }
}

fn gone() -> Error {
    Error::new(ErrorCode::State, "the run has no result to give")
}

struct Job {
    inputs: Vec<(String, Datum)>,
    options: RunOptions,
    reply: Sender<Result<Outputs>>,
}

/// Threads that take jobs from one queue, each with a replica of the session.
pub(super) struct Workers {
    jobs: Option<Sender<Job>>,
    threads: Vec<JoinHandle<()>>,
    closed: Arc<AtomicBool>,
}

impl Workers {
    /// A thread for each replica; `State` where one cannot be started.
    pub fn start(replicas: Vec<Session>) -> Result<Workers> {
        let (jobs, queue) = mpsc::channel::<Job>();
        let queue = Arc::new(Mutex::new(queue));
        let mut workers = Workers {
            jobs: Some(jobs),
            threads: Vec::with_capacity(replicas.len()),
            closed: Arc::default(),
        };
        for session in replicas {
            let (queue, closed) = (queue.clone(), workers.closed.clone());
            let thread = std::thread::Builder::new()
                .name("kilim run".to_string())
                .spawn(move || work(session, &queue, &closed))
                .map_err(|e| {
                    Error::new(ErrorCode::State, format!("a thread cannot be started: {e}"))
                })?;
            workers.threads.push(thread);
        }
        Ok(workers)
    }

    /// Puts a run at the end of the queue.
    pub fn enqueue(&self, inputs: &[(&str, Datum)], options: &RunOptions) -> RunHandle {
        let (reply, result) = mpsc::channel();
        let owned = inputs.iter().map(|(n, t)| (n.to_string(), t.clone()));
        let job = Job {
            inputs: owned.collect(),
            options: options.clone(),
            reply,
        };
        // Where no worker is left, the reply is dropped with the job, and the handle says so.
        if let Some(jobs) = &self.jobs {
            let _ = jobs.send(job);
        }
        RunHandle { result }
    }
}

impl Drop for Workers {
    /// What is under way comes to its end, what waits is dropped.
    fn drop(&mut self) {
        self.closed.store(true, Ordering::Relaxed);
        self.jobs = None;
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

fn work(mut session: Session, queue: &Mutex<Receiver<Job>>, closed: &AtomicBool) {
    loop {
        let next = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(job) = next else { return };
        if closed.load(Ordering::Relaxed) {
            continue;
        }
        let borrowed: Vec<(&str, Datum)> = job
            .inputs
            .iter()
            .map(|(n, t)| (n.as_str(), t.clone()))
            .collect();
        let result = pollster::block_on(session.run_data(&borrowed, &job.options));
        // Nobody need wait for it any more.
        let _ = job.reply.send(result);
    }
}
