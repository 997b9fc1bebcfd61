//! An open library, and its backend's table.

use std::ffi::{CStr, CString, c_char};
use std::path::Path;

use kilim_core::ids::KernelIndex;
use kilim_core::{Error, ErrorCode, Result};
use kilim_plugin_abi::{self as abi, Status};

use crate::opened::Opened;
use crate::trial;

/// Bytes of the interface up to the last function that every backend has.
const LEAST: usize = std::mem::offset_of!(abi::Backend, begin);

/// Room for what a backend says; longer text is cut off by the backend.
const TEXT: usize = 1024;

/// A backend and the library that it lives in.
pub struct Library {
    /// What `kilim_backend_create` gave; destroyed with this.
    backend: *const abi::Backend,
    /// A copy of its table; what an older library does not have is missing.
    pub table: abi::Backend,
    destroy: abi::Destroy,
    /// Unloaded last.
    _library: Opened,
}

// SAFETY: the interface allows its shared functions to be called from any thread; the table is never
// written.
unsafe impl Send for Library {}
// SAFETY: shared functions may be called from any thread, and the table is never written.
unsafe impl Sync for Library {}

impl Drop for Library {
    fn drop(&mut self) {
        // SAFETY: called once, after all contexts and executables, which hold the library.
        unsafe { (self.destroy)(self.backend) };
    }
}

/// What is wrong with a library.
pub fn no_library(code: ErrorCode, file: &Path, what: &str) -> Error {
    Error::new(code, format!("`{}` {what}", file.display()))
}

fn no_backend(file: &Path, what: &str) -> Error {
    no_library(ErrorCode::NoBackend, file, what)
}

impl Library {
    /// Opens a library and has it create its backend, after a [`trial`].
    ///
    /// # Errors
    /// `NoBackend` where it cannot be loaded, lacks the functions of the interface or is for another
    /// version; `Device` where it crashes, ends the process or hangs; what the backend says where it
    /// cannot be created.
    pub fn open(file: &Path) -> Result<Library> {
        trial::passed(file, "creates its backend", || Library::load(file))
    }

    fn load(file: &Path) -> Result<Library> {
        // SAFETY: the user names the folder whose libraries are run; loading runs their initialisers.
        let library = unsafe { Opened::new(file) }
            .map_err(|e| no_backend(file, &format!("cannot be loaded: {e}")))?;
        let missing =
            |e: libloading::Error| no_backend(file, "is not the library of a backend").with_hint(e);
        // SAFETY: a function of this name has this type; that is the interface.
        let (create, destroy) = unsafe {
            let create = library
                .get::<abi::Create>(b"kilim_backend_create\0")
                .map_err(missing)?;
            let destroy = library
                .get::<abi::Destroy>(b"kilim_backend_destroy\0")
                .map_err(missing)?;
            (*create, *destroy)
        };
        let release = CString::new(env!("CARGO_PKG_VERSION")).unwrap_or_default();
        let host = abi::Host {
            version: abi::VERSION,
            size: size_of::<abi::Backend>() as u32,
            release: release.as_ptr(),
        };
        let mut backend = std::ptr::null();
        let mut message = Message::new();
        // SAFETY: all three live during the call.
        let status = unsafe { create(&host, &mut backend, message.raw()) };
        let what = format!("`{}` did not create its backend", file.display());
        check(status, &message, &what)?;
        if backend.is_null() {
            return Err(Error::new(ErrorCode::Device, what).with_got("no backend and no error"));
        }
        // SAFETY: version and size come first in every version of the interface.
        let (version, size) = unsafe { ((*backend).version, (*backend).size as usize) };
        let wrong = |what: &str| {
            // SAFETY: created above, not used any more.
            unsafe { destroy(backend) };
            no_backend(file, what)
        };
        if version != abi::VERSION {
            return Err(wrong("is for another version of the backend interface")
                .with_expected(abi::VERSION)
                .with_got(version));
        }
        if size < LEAST {
            return Err(
                wrong("has a table that is too small for the backend interface")
                    .with_expected(format!("at least {LEAST} bytes"))
                    .with_got(format!("{size} bytes")),
            );
        }
        let mut table = abi::Backend::EMPTY;
        // SAFETY: the library says that so many bytes are there; a table of fewer bytes has missing
        // what comes later, a longer one is of a later addition.
        unsafe {
            let bytes = size.min(size_of::<abi::Backend>());
            std::ptr::copy_nonoverlapping(
                backend.cast::<u8>(),
                (&raw mut table).cast::<u8>(),
                bytes,
            );
        }
        let planned = table.allocate.is_some() || table.release.is_some() || table.bind.is_some();
        let keeps = table.keep.is_some() || table.use_kept.is_some();
        let keeps = keeps || table.read_kept.is_some() || table.release_kept.is_some();
        let imports = table.import_memory.is_some() || table.keep_in.is_some();
        let imports = imports || table.write_kept.is_some();
        let keeps = keeps || imports;
        let contexts = table.create_context.is_some() || table.replica.is_some();
        let needed = [
            ("supports", table.supports.is_some()),
            ("prepare", table.prepare.is_some()),
            ("release_executable", table.release_executable.is_some()),
            ("write", table.write.is_some()),
            ("run", table.run.is_some()),
            ("read", table.read.is_some()),
            (
                "release_context",
                !contexts || table.release_context.is_some(),
            ),
            ("allocate", !planned || table.allocate.is_some()),
            ("release", !planned || table.release.is_some()),
            ("bind", !planned || table.bind.is_some()),
            (
                "set_timing",
                table.times.is_none() || table.set_timing.is_some(),
            ),
            ("times", table.set_timing.is_none() || table.times.is_some()),
            ("submit", table.wait.is_none() || table.submit.is_some()),
            ("wait", table.submit.is_none() || table.wait.is_some()),
            ("keep", !keeps || table.keep.is_some()),
            ("use", !keeps || table.use_kept.is_some()),
            ("read_kept", !keeps || table.read_kept.is_some()),
            ("release_kept", !keeps || table.release_kept.is_some()),
            ("import_memory", !imports || table.import_memory.is_some()),
            ("keep_in", !imports || table.keep_in.is_some()),
            ("write_kept", !imports || table.write_kept.is_some()),
            (
                "save_cache",
                table.load_cache.is_none() || table.save_cache.is_some(),
            ),
            (
                "load_cache",
                table.save_cache.is_none() || table.load_cache.is_some(),
            ),
            ("is_lost", table.reopen.is_none() || table.is_lost.is_some()),
            ("reopen", table.is_lost.is_none() || table.reopen.is_some()),
            (
                "replica",
                table.replicate.is_none() || table.replica.is_some(),
            ),
            (
                "replicate",
                table.replica.is_none() || table.replicate.is_some(),
            ),
        ];
        if let Some((name, _)) = needed.iter().find(|(_, there)| !there) {
            return Err(wrong(&format!("has a backend without `{name}`")));
        }
        Ok(Library {
            backend,
            table,
            destroy,
            _library: library,
        })
    }
}

/// Takes what a backend says when it fails.
pub struct Message {
    text: Vec<u8>,
    raw: abi::Message,
}

impl Message {
    /// Room for words, empty.
    pub fn new() -> Message {
        Message {
            text: vec![0; TEXT],
            raw: abi::Message {
                text: std::ptr::null_mut(),
                capacity: TEXT,
                node: -1,
            },
        }
    }

    /// The message as the library gets it for one call.
    pub fn raw(&mut self) -> *mut abi::Message {
        self.raw.text = self.text.as_mut_ptr().cast();
        &raw mut self.raw
    }

    /// The words; where they are not UTF-8 with replacements.
    pub fn text(&self) -> String {
        match CStr::from_bytes_until_nul(&self.text) {
            Ok(text) => text.to_string_lossy().into_owned(),
            Err(_) => String::from_utf8_lossy(&self.text).into_owned(),
        }
    }

    /// The node that failed, if the backend named one.
    pub fn node(&self) -> Option<KernelIndex> {
        usize::try_from(self.raw.node).ok().map(KernelIndex)
    }
}

/// An error of what a backend says; `what` stands before it.
pub fn check(status: Status, message: &Message, what: &str) -> Result<()> {
    let code = match status {
        abi::OK => return Ok(()),
        abi::UNSUPPORTED => ErrorCode::Unsupported,
        abi::INVALID_VALUE => ErrorCode::InvalidValue,
        abi::LIMIT => ErrorCode::Limit,
        _ => ErrorCode::Device,
    };
    let text = message.text();
    let text = match text.is_empty() {
        true => format!("{what}: status {status}, and no word why"),
        false => format!("{what}: {text}"),
    };
    Err(Error::new(code, text))
}

/// A string that the library owns.
///
/// # Safety
/// `text` is NULL or ends with a zero.
pub unsafe fn owned(text: *const c_char) -> Option<String> {
    if text.is_null() {
        return None;
    }
    // SAFETY: `text` is not NULL, so it ends with a zero.
    let text = unsafe { CStr::from_ptr(text) };
    Some(text.to_string_lossy().into_owned())
}
