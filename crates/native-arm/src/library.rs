//! Finding and opening `libkilim_acl.so`, once for the process.

use std::ffi::CStr;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use kilim_core::{Error, ErrorCode, Result};

use crate::call::Call;
use crate::ffi::{ABI, Functions, OK, Operator, REFUSED, Reason, Request};

const FILE: &str = "libkilim_acl.so";
/// Names the file itself.
const VARIABLE: &str = "KILIM_ACL";

/// The opened library. It is never closed: ACL's threads outlive every session.
pub struct Library {
    functions: Functions,
    /// ACL's schedulers belong to the process, and only one thread at a time may use them.
    turn: Mutex<()>,
}

/// What ACL says to a call.
pub enum Answer {
    Yes,
    Refused(String),
    Failed(String),
}

impl Library {
    /// The library, opened at the first call.
    ///
    /// # Errors
    /// `NoBackend` where it, or ACL itself, is not there, with the loader's message.
    pub fn get() -> Result<&'static Library> {
        static LIBRARY: OnceLock<Result<Library>> = OnceLock::new();
        LIBRARY
            .get_or_init(Library::open)
            .as_ref()
            .map_err(Clone::clone)
    }

    fn open() -> Result<Library> {
        let absent = |e: &dyn std::fmt::Display| {
            Error::new(
                ErrorCode::NoBackend,
                format!("the ARM Compute Library cannot be used: {e}"),
            )
            .with_hint("docs/arm.md tells how to build libkilim_acl.so")
        };
        let mut first = None;
        for path in places() {
            // SAFETY: the file is a library of the user's own choice or installation; its
            // initialisers are those of ACL.
            match unsafe { libloading::Library::new(&path) } {
                Ok(library) => return Library::check(library).map_err(|e| absent(&e)),
                Err(e) => first.get_or_insert(e),
            };
        }
        Err(match first {
            Some(e) => absent(&e),
            None => absent(&"there is no place to look for it"),
        })
    }

    fn check(library: libloading::Library) -> Result<Library, String> {
        // SAFETY: a library that has this function of ours declares it so.
        let abi = unsafe {
            let abi = library.get::<unsafe extern "C" fn() -> u32>(b"kilim_acl_abi\0");
            abi.map_err(|e| e.to_string())?()
        };
        if abi != ABI {
            return Err(format!(
                "{FILE} has interface {abi}, this build needs {ABI}"
            ));
        }
        // SAFETY: the version is ours, and the library is leaked.
        let functions = unsafe { Functions::find(&library) }.map_err(|e| e.to_string())?;
        std::mem::forget(library);
        Ok(Library {
            functions,
            turn: Mutex::new(()),
        })
    }

    fn turn(&self) -> MutexGuard<'_, ()> {
        // ACL keeps no state between calls that a panic of ours could have left half done.
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// ACL's version and build options.
    pub fn build_info(&self) -> String {
        // SAFETY: the function gives a static string.
        let text = unsafe { CStr::from_ptr((self.functions.build_info)()) };
        text.to_string_lossy().into_owned()
    }

    /// Starts a target.
    ///
    /// # Errors
    /// `NoBackend` where the machine does not have it.
    pub fn start(&self, target: i32) -> Result<()> {
        let _turn = self.turn();
        let mut reason = Reason::new();
        // SAFETY: the reason is writable for its size.
        let status = unsafe { (self.functions.start)(target, reason.as_mut_ptr(), reason.size()) };
        match status {
            OK => Ok(()),
            _ => Err(Error::new(
                ErrorCode::NoBackend,
                format!("the ARM Compute Library cannot start: {}", reason.text()),
            )),
        }
    }

    /// Sets the threads of all operators of the process.
    pub fn set_threads(&self, threads: usize) {
        let _turn = self.turn();
        // SAFETY: a plain call.
        unsafe { (self.functions.set_threads)(threads.try_into().unwrap_or(u32::MAX)) }
    }

    /// Asks ACL about a call, and makes its operator where `make` takes one. For making, the call's
    /// constants must have data.
    pub fn ask(
        &self,
        target: i32,
        call: &Call,
        data: &[Option<&[u8]>],
        make: Option<&mut *mut Operator>,
    ) -> Answer {
        let inputs = call.input_tensors(data);
        let outputs = [call.output.tensor(None)];
        let mut reason = Reason::new();
        let request = Request {
            target,
            inputs: inputs.as_ptr(),
            input_count: inputs.len() as u32,
            outputs: outputs.as_ptr(),
            output_count: outputs.len() as u32,
            make: make.map_or(std::ptr::null_mut(), |m| m),
            reason: reason.as_mut_ptr(),
            reason_size: reason.size(),
        };
        let _turn = self.turn();
        // SAFETY: the tensors, their data and scales are borrowed from `call` and `data` and live
        // during the call; nothing of the request is kept after it.
        match unsafe { call.family.ask(&self.functions, &request) } {
            OK => Answer::Yes,
            REFUSED => Answer::Refused(reason.text()),
            _ => Answer::Failed(reason.text()),
        }
    }

    /// # Safety
    /// `op` is an operator of this library. `inputs` and `outputs` are as many as its request had,
    /// null or as large as the tensors of the request; nobody else uses the outputs meanwhile.
    pub unsafe fn run(
        &self,
        op: *mut Operator,
        inputs: &[*const u8],
        output: *mut u8,
    ) -> Result<(), String> {
        let outputs = [output.cast()];
        let mut reason = Reason::new();
        let _turn = self.turn();
        // SAFETY: the caller vouches for the tensors; the lock makes this the only run.
        let status = unsafe {
            (self.functions.run)(
                op,
                inputs.as_ptr().cast(),
                outputs.as_ptr(),
                reason.as_mut_ptr(),
                reason.size(),
            )
        };
        match status {
            OK => Ok(()),
            _ => Err(reason.text()),
        }
    }

    /// # Safety
    /// `op` is an operator of this library that is not used afterwards.
    pub unsafe fn destroy(&self, op: *mut Operator) {
        let _turn = self.turn();
        // SAFETY: the caller vouches for the operator.
        unsafe { (self.functions.destroy)(op) }
    }
}

/// The file that the variable names, or else beside the program and where the loader looks.
fn places() -> Vec<PathBuf> {
    if let Some(path) = std::env::var_os(VARIABLE) {
        return vec![path.into()];
    }
    let beside = std::env::current_exe().ok();
    let beside = beside.as_deref().and_then(|exe| exe.parent());
    let beside = beside
        .map(|dir| dir.join(FILE))
        .filter(|file| file.exists());
    beside.into_iter().chain([FILE.into()]).collect()
}
