//! Finding out in a process of its own whether a library crashes, so that it takes nothing along.

/// The environment variable that says `off` where libraries are loaded without a trial.
pub const VARIABLE: &str = "KILIM_BACKEND_TRIAL";

/// Has a copy of this process do `work`, and gives the signal that ended the copy, if one did. Only
/// Linux has such copies with all that loading a library needs; elsewhere nothing is tried.
#[cfg(target_os = "linux")]
pub fn survives(work: impl FnOnce()) -> Result<(), i32> {
    use std::time::{Duration, Instant};

    /// A copy has this thread only, and waits for ever where another one held a lock.
    const LIMIT: Duration = Duration::from_secs(10);

    if std::env::var_os(VARIABLE).is_some_and(|v| v == "off") {
        return Ok(());
    }
    // SAFETY: the copy ends in `_exit`, which runs nothing of this process's. The C library makes its
    // allocator and its loader usable in it.
    match unsafe { libc::fork() } {
        // No process, no trial.
        -1 => Ok(()),
        0 => {
            let none = libc::rlimit {
                rlim_cur: 0,
                rlim_max: 0,
            };
            // SAFETY: no more than a number is read: nobody needs a picture of the memory.
            unsafe { libc::setrlimit(libc::RLIMIT_CORE, &raw const none) };
            let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
            // SAFETY: it does not come back.
            unsafe { libc::_exit(0) }
        }
        child => {
            let start = Instant::now();
            let mut status = 0;
            // SAFETY: the child is this function's own, and is waited for once.
            while unsafe { libc::waitpid(child, &raw mut status, libc::WNOHANG) } == 0 {
                if start.elapsed() > LIMIT {
                    // SAFETY: as above; it has not been waited for.
                    unsafe {
                        libc::kill(child, libc::SIGKILL);
                        libc::waitpid(child, &raw mut status, 0);
                    }
                    return Ok(());
                }
                std::thread::sleep(Duration::from_millis(1));
            }
            match libc::WIFSIGNALED(status) {
                true => Err(libc::WTERMSIG(status)),
                false => Ok(()),
            }
        }
    }
}

#[cfg(not(target_os = "linux"))]
pub fn survives(_: impl FnOnce()) -> Result<(), i32> {
    Ok(())
}
