//! Ctrl-C.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use kilim::{Error, ErrorCode};

use crate::Failure;

/// A signal that Ctrl-C sets.
pub fn interrupted() -> Result<Arc<AtomicBool>, Failure> {
    let signal = Arc::new(AtomicBool::new(false));
    let set = signal.clone();
    ctrlc::set_handler(move || set.store(true, Ordering::Relaxed)).map_err(|e| {
        let message = format!("Ctrl-C cannot be waited for: {e}");
        Error::new(ErrorCode::Io, message)
    })?;
    Ok(signal)
}
