//! Aborts that reach a thread while it computes and sees no messages.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use js_sys::Function;
use kilim_core::interrupt::AbortSignal;
use wasm_bindgen::JsValue;

use crate::callback::Callback;
use crate::clock::milliseconds;

/// What stops one call: a flag, or a function that is asked while the call computes.
pub struct Stop {
    told: AtomicBool,
    ask: Option<Callback>,
    /// The bits of the time, in milliseconds, before which the function is not asked again.
    next: AtomicU64,
}

/// Milliseconds between two questions at least.
const PAUSE: f64 = 4.0;
/// A question takes at most one part in so many of the time, as long as that leaves [`LONGEST`] between two.
const SHARE: f64 = 32.0;
const LONGEST: f64 = 12.0;

impl Stop {
    /// `stopped` says whether the call is to stop, from any depth of it.
    pub fn new(stopped: Option<Function>) -> Stop {
        Stop {
            told: AtomicBool::new(false),
            ask: stopped.map(Callback::new),
            next: AtomicU64::new((milliseconds() + PAUSE).to_bits()),
        }
    }

    pub fn tell(&self) {
        self.told.store(true, Ordering::Relaxed);
    }
}

impl AbortSignal for Stop {
    fn is_set(&self) -> bool {
        if self.told.load(Ordering::Relaxed) {
            return true;
        }
        let Some(ask) = self.ask.as_ref().and_then(Callback::function) else {
            return false;
        };
        let began = milliseconds();
        if began < f64::from_bits(self.next.load(Ordering::Relaxed)) {
            return false;
        }
        let stopped = ask.call0(&JsValue::NULL).is_ok_and(|s| s.is_truthy());
        if stopped {
            self.tell();
        }
        let now = milliseconds();
        let pause = ((now - began) * SHARE).clamp(PAUSE, LONGEST);
        self.next.store((now + pause).to_bits(), Ordering::Relaxed);
        stopped
    }
}
