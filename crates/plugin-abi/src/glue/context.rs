//! What a session asks of a backend, and waiting for what it has started.

use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::program::{Program, lock};
use super::queue::Queue;
use super::{Opened, guarded, handles, list, text};
use crate::guest::{Call, DataLayout, Guest, Half, Packs, Quantized, Settings};
use crate::{self as abi, Status};

/// What Kilim calls a context.
pub struct Context {
    pub settings: Settings,
    /// Shared with replicas.
    pub packs: Arc<Packs>,
    queue: Option<Arc<Queue>>,
    programs: Mutex<Vec<Weak<Mutex<Program>>>>,
}

impl Context {
    pub fn new(settings: Settings, queue: Option<Arc<Queue>>) -> Context {
        Context {
            settings,
            packs: Arc::default(),
            queue,
            programs: Mutex::default(),
        }
    }

    /// A context for another run at the same time.
    pub fn replica(&self) -> Context {
        Context {
            packs: self.packs.clone(),
            ..Context::new(self.settings.clone(), self.queue.clone())
        }
    }

    /// Has the context know a program, whose failures it tells.
    pub fn add(&self, program: &Arc<Mutex<Program>>) {
        let mut programs = self.programs.lock().unwrap_or_else(PoisonError::into_inner);
        programs.retain(|program| program.strong_count() > 0);
        programs.push(Arc::downgrade(program));
    }
}

pub unsafe extern "C" fn create_context<G: Guest>(
    this: *mut c_void,
    options: *const abi::ContextOptions,
    context: *mut *mut c_void,
    error: *mut abi::Message,
) -> Status {
    guarded(error, || {
        // SAFETY: `this` is of `create`.
        let opened = unsafe { &*this.cast::<Opened<G>>() };
        // SAFETY: Kilim's options have a number of threads, and the rest where its table has options.
        let settings = unsafe {
            let threads = (*options).threads;
            let mut settings = Settings {
                threads: (threads > 0).then_some(threads),
                ..Settings::default()
            };
            if opened.told.knows_options {
                settings.spare_memory = (*options).spare_memory != 0;
                settings.layout = DataLayout::of((*options).layout);
                settings.dynamic_shapes = (*options).dynamic_shapes != 0;
                settings.half = Half::of((*options).half);
                settings.quantized = Quantized::of((*options).quantized);
                settings.timers = (*options).timers != 0;
                let given = list((*options).settings, (*options).setting_count).iter();
                let given = given.map(|s| (text(s.name).to_string(), text(s.value).to_string()));
                settings.values = given.collect();
            }
            if opened.told.knows_queues {
                settings.queue = handles::given_queue(&*options);
            }
            settings
        };
        opened.hear(Call::CreateContext(&settings));
        let made = Box::new(Context::new(settings, opened.queue.clone()));
        // SAFETY: Kilim gave `context` to be written.
        unsafe { *context = Box::into_raw(made).cast() };
        Ok(())
    })
}

pub unsafe extern "C" fn release_context<G: Guest>(this: *mut c_void, context: *mut c_void) {
    // SAFETY: `this` is of `create`, the box of `create_context` or `replica` and released once.
    let (opened, context) = unsafe {
        (
            &*this.cast::<Opened<G>>(),
            Box::from_raw(context.cast::<Context>()),
        )
    };
    // What was packed and panics while it is dropped has nobody to hear it.
    let _ = catch_unwind(AssertUnwindSafe(move || drop(context)));
    opened.hear(Call::ReleaseContext);
}

/// What was queued runs already.
pub unsafe extern "C" fn submit(
    _this: *mut c_void,
    _executable: *mut c_void,
    _error: *mut abi::Message,
) -> Status {
    abi::OK
}

pub unsafe extern "C" fn wait(
    _this: *mut c_void,
    context: *mut c_void,
    block: i32,
    done: *mut i32,
    error: *mut abi::Message,
) -> Status {
    guarded(error, || {
        // SAFETY: the context is of `create_context`.
        let context = unsafe { &*context.cast::<Context>() };
        let ended = context.queue.as_ref().is_none_or(|queue| {
            let given = queue.given();
            if block != 0 {
                queue.drain();
            }
            queue.is_done(given)
        });
        // SAFETY: Kilim gave `done` to be written.
        unsafe { *done = i32::from(ended) };
        if !ended {
            return Ok(());
        }
        let programs = context.programs.lock();
        let programs = programs.unwrap_or_else(PoisonError::into_inner);
        for program in programs.iter().filter_map(Weak::upgrade) {
            let program = lock(&program);
            if let Some((mut failure, step)) = program.failure.clone() {
                // The number of a step says nothing without its executable.
                let step = usize::try_from(step)
                    .ok()
                    .and_then(|i| program.steps.get(i));
                if let Some(step) = step {
                    failure.text = format!("`{}`: {}", step.name, failure.text);
                }
                return Err((failure, -1));
            }
        }
        Ok(())
    })
}
