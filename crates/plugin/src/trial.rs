//! Finding out in a process of its own whether a library crashes, ends the process or hangs, so that it
//! takes nothing along.

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kilim_core::{Error, ErrorCode, Result};

/// The environment variable that says `off` where libraries are loaded without a trial, or how many
/// seconds one may take.
pub const VARIABLE: &str = "KILIM_BACKEND_TRIAL";

/// How long a trial may take where the variable says nothing.
#[cfg(target_os = "linux")]
const LIMIT: Duration = Duration::from_secs(10);

/// Held while a library is opened or closed, and while a copy of this process is made: a copy that is made while another thread
/// changes the loader's lists has them half changed.
static LOADER: Mutex<()> = Mutex::new(());

/// The loader for one thread alone.
pub fn loader() -> MutexGuard<'static, ()> {
    LOADER.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How a trial ended that was not survived.
#[derive(Debug, PartialEq, Eq)]
#[cfg_attr(not(target_os = "linux"), expect(dead_code))]
enum End {
    /// The process was ended by this signal.
    Signal(i32),
    /// The library ended the process, with this status.
    Exit(i32),
    /// The library was not done after this time.
    Late(Duration),
}

/// Loads a library after a trial of that. `what` says what loading does.
///
/// # Errors
/// Those of `load`; `Device` where the library crashes, ends the process or hangs.
pub fn passed<T>(file: &Path, what: &str, load: impl Fn() -> Result<T>) -> Result<T> {
    let Err(end) = survives(file, || drop(load())) else {
        return load();
    };
    let (how, got) = match end {
        End::Signal(signal) => ("crashes", format!("signal {signal}")),
        End::Exit(status) => ("ends the process", format!("exit status {status}")),
        End::Late(limit) => ("hangs", format!("nothing for {limit:?}")),
    };
    let hint = match end {
        End::Late(_) => format!("{VARIABLE}=SECONDS gives it more time, {VARIABLE}=off all"),
        _ => format!("where only a trial of it fails, set {VARIABLE}=off"),
    };
    let what = format!("`{}` {how} as it {what}", file.display());
    Err(Error::new(ErrorCode::Device, what)
        .with_got(got)
        .with_hint(hint))
}

/// Has a copy of this process do `work`, which loads `file`. A file that has survived once is not tried
/// again in this process, as long as it stays the same. Only Linux has such copies with all that loading
/// a library needs; elsewhere nothing is tried.
#[cfg(target_os = "linux")]
fn survives(file: &Path, work: impl FnOnce()) -> Result<(), End> {
    static SURVIVED: Mutex<Vec<Version>> = Mutex::new(Vec::new());

    let said = std::env::var(VARIABLE).unwrap_or_default();
    if said == "off" {
        return Ok(());
    }
    let limit = said
        .parse()
        .ok()
        .and_then(|s| Duration::try_from_secs_f64(s).ok());
    let version = Version::of(file);
    let survived = || SURVIVED.lock().unwrap_or_else(PoisonError::into_inner);
    if version.as_ref().is_some_and(|v| survived().contains(v)) {
        return Ok(());
    }
    in_a_copy(limit.unwrap_or(LIMIT), work)?;
    survived().extend(version);
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn survives(_: &Path, _: impl FnOnce()) -> Result<(), End> {
    Ok(())
}

/// A file as it is now.
#[cfg(target_os = "linux")]
#[derive(PartialEq, Eq)]
struct Version {
    file: std::path::PathBuf,
    length: u64,
    modified: std::time::SystemTime,
}

#[cfg(target_os = "linux")]
impl Version {
    fn of(file: &Path) -> Option<Version> {
        let file = file.canonicalize().ok()?;
        let about = file.metadata().ok()?;
        Some(Version {
            length: about.len(),
            modified: about.modified().ok()?,
            file,
        })
    }
}

#[cfg(target_os = "linux")]
fn in_a_copy(limit: Duration, work: impl FnOnce()) -> Result<(), End> {
    use std::fs::File;
    use std::io::Read;
    use std::os::fd::FromRawFd;
    use std::time::Instant;

    let mut ends = [0; 2];
    // SAFETY: there is room for the two ends of a pipe.
    if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC | libc::O_NONBLOCK) } != 0 {
        // No pipe, no trial.
        return Ok(());
    }
    // SAFETY: both were opened above, and belong to nobody else.
    let [mut done, doing] = ends.map(|end| unsafe { File::from_raw_fd(end) });
    let alone = loader();
    // SAFETY: the copy ends in `_exit`, which runs nothing of this process's. The C library makes its
    // allocator and its loader usable in it.
    let forked = unsafe { libc::fork() };
    // The copy has a lock of its own, which its one thread holds.
    drop(alone);
    match forked {
        // No process, no trial.
        -1 => Ok(()),
        0 => {
            let none = libc::rlimit {
                rlim_cur: 0,
                rlim_max: 0,
            };
            // SAFETY: no more than a number is read: nobody needs a picture of the memory.
            unsafe { libc::setrlimit(libc::RLIMIT_CORE, &raw const none) };
            end_at_once();
            let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
            let _ = std::io::Write::write(&mut &doing, b".");
            // SAFETY: it does not come back.
            unsafe { libc::_exit(0) }
        }
        child => {
            drop(doing);
            let start = Instant::now();
            let mut status = 0;
            // SAFETY: the child is this function's own, and is waited for once.
            while unsafe { libc::waitpid(child, &raw mut status, libc::WNOHANG) } == 0 {
                if start.elapsed() > limit {
                    // SAFETY: the child is this function's own, and has not been waited for.
                    unsafe {
                        libc::kill(child, libc::SIGKILL);
                        libc::waitpid(child, &raw mut status, 0);
                    }
                    return Err(End::Late(limit));
                }
                std::thread::sleep(Duration::from_millis(1));
            }
            if libc::WIFSIGNALED(status) {
                return Err(End::Signal(libc::WTERMSIG(status)));
            }
            // A library that ends the process has it end before the work is done.
            match done.read(&mut [0]) {
                Ok(1) => Ok(()),
                _ => Err(End::Exit(libc::WEXITSTATUS(status))),
            }
        }
    }
}

/// Has this copy of a process end with nothing of the process's own between. A function that it has called as it
/// exits or crashes may wait for a thread, or for a lock, that only the process has: drivers of GPUs join their
/// threads as the process exits.
#[cfg(target_os = "linux")]
fn end_at_once() {
    for signal in [
        libc::SIGSEGV,
        libc::SIGBUS,
        libc::SIGILL,
        libc::SIGFPE,
        libc::SIGABRT,
    ] {
        // SAFETY: what the system does by itself needs nothing of this process.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
    #[cfg(target_env = "gnu")]
    {
        unsafe extern "C" {
            fn on_exit(
                function: extern "C" fn(libc::c_int, *mut libc::c_void),
                argument: *mut libc::c_void,
            ) -> libc::c_int;
        }
        extern "C" fn end(status: libc::c_int, _: *mut libc::c_void) {
            // SAFETY: it does not come back.
            unsafe { libc::_exit(status) }
        }
        // SAFETY: the function takes what `on_exit` gives it, and reads none of it as an address. What is
        // registered last is called first, so only a library's own functions are called before it.
        unsafe { on_exit(end, std::ptr::null_mut()) };
    }
}
