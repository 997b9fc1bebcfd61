//! One importer under libFuzzer. `cargo xtask fuzz --importers` builds and calls this program; `README.md` says what for.

mod found;
#[path = "../../../crates/formats/tests/fuzzed/input.rs"]
mod input;
mod kept;
mod protobuf;
#[path = "../../../crates/formats/tests/fuzzed/seeds.rs"]
mod seeds;
#[path = "../../../crates/formats/tests/fuzzed/small.rs"]
mod small;
#[path = "../../../crates/formats/tests/fuzzed/zip.rs"]
mod zip;

use std::ffi::{CString, c_char, c_int};
use std::path::Path;
use std::process::ExitCode;
use std::sync::OnceLock;

// What links libFuzzer.
use libfuzzer_sys as _;

use found::Target;
use kilim_test_support::allocations::Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

static TARGET: OnceLock<Target> = OnceLock::new();

unsafe extern "C" {
    fn LLVMFuzzerRunDriver(
        count: *mut c_int,
        arguments: *mut *mut *mut c_char,
        input: extern "C" fn(*const u8, usize) -> c_int,
    ) -> c_int;
}

extern "C" fn input_of_libfuzzer(data: *const u8, size: usize) -> c_int {
    let bytes = match size {
        0 => &[],
        // SAFETY: libFuzzer gives `size` bytes from `data` on, which nobody writes until this returns.
        _ => unsafe { std::slice::from_raw_parts(data, size) },
    };
    if let Some(target) = TARGET.get() {
        target.run(bytes);
    }
    0
}

/// Asked for by libfuzzer-sys, whose own entry is not the one in use.
#[unsafe(no_mangle)]
fn rust_fuzzer_test_input(_: &[u8]) -> c_int {
    0
}

/// What libFuzzer calls for a changed input, with its own changes behind `LLVMFuzzerMutate`.
#[unsafe(no_mangle)]
extern "C" fn LLVMFuzzerCustomMutator(data: *mut u8, size: usize, most: usize, seed: u32) -> usize {
    // SAFETY: libFuzzer gives room for `most` bytes, which nobody else has until this returns.
    let room = unsafe { std::slice::from_raw_parts_mut(data, most) };
    let nested = TARGET.get().is_some_and(Target::is_nested);
    match nested
        .then(|| protobuf::changed(&room[..size], seed))
        .flatten()
    {
        Some(changed) if changed.len() <= most => {
            room[..changed.len()].copy_from_slice(&changed);
            changed.len()
        }
        _ => libfuzzer_sys::fuzzer_mutate(room, size, most),
    }
}

/// Gives `arguments` to libFuzzer.
fn drive(format: &str, folder: &Path, arguments: &[String]) -> ExitCode {
    let program = std::env::current_exe().unwrap_or_default();
    // A merge calls the program anew: the first argument, in front of others, is a part of a line for the shell.
    let this = format!("{} run {format} {}", program.display(), folder.display());
    let strings = std::iter::once(this.as_str()).chain(arguments.iter().map(String::as_str));
    let strings = strings.map(|s| CString::new(s).expect("an argument"));
    let mut pointers: Vec<_> = strings.map(CString::into_raw).collect();
    let mut count = pointers.len() as c_int;
    pointers.push(std::ptr::null_mut());
    let mut arguments = pointers.as_mut_ptr();
    // SAFETY: `arguments` are `count` strings with a null behind them, which are never freed; the callback is a function.
    let code = unsafe { LLVMFuzzerRunDriver(&mut count, &mut arguments, input_of_libfuzzer) };
    ExitCode::from(u8::try_from(code).unwrap_or(1))
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments == ["formats"] {
        let formats = input::FORMATS.map(|(format, _)| format);
        println!("{}", formats.join("\n"));
        return ExitCode::SUCCESS;
    }
    let [job, format, folder, rest @ ..] = &arguments[..] else {
        eprintln!("`formats`, or a job, a format and a folder are needed");
        return ExitCode::FAILURE;
    };
    let Some(of) = input::FORMATS.into_iter().find(|of| of.0 == format) else {
        eprintln!("no importer of `{format}`");
        return ExitCode::FAILURE;
    };
    let folder = Path::new(folder);
    let done = match job.as_str() {
        "run" => {
            let target = Target::new(of, folder);
            let _ = TARGET.set(target);
            return drive(format, folder, rest);
        }
        "unpack" => kept::unpack(of.0, folder),
        "keep" => kept::keep(of.0, folder),
        _ => Err(std::io::Error::other("jobs are run, unpack and keep")),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
