//! A library that the loader has open.

use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::path::Path;

use libloading::{Error, Library};

use crate::trial::loader;

/// Closes the library where it is dropped.
pub struct Opened(ManuallyDrop<Library>);

impl Opened {
    /// # Errors
    /// What the loader says.
    ///
    /// # Safety
    /// What the library does as it is opened and closed has to be sound.
    pub unsafe fn new(file: &Path) -> Result<Opened, Error> {
        let _alone = loader();
        // SAFETY: that of this function.
        unsafe { Library::new(file) }.map(|library| Opened(ManuallyDrop::new(library)))
    }
}

impl Deref for Opened {
    type Target = Library;

    fn deref(&self) -> &Library {
        &self.0
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        let _alone = loader();
        // SAFETY: dropped here alone, once.
        unsafe { ManuallyDrop::drop(&mut self.0) };
    }
}
