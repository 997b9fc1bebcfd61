//! What the program prints.

use std::fmt::Arguments;
use std::io::{ErrorKind, Write, stdout};
use std::process::exit;

use serde::Serialize;

use crate::Failure;

/// The exit code of programs in a pipe whose reader has gone away, by the signal they end with elsewhere.
const READER_GONE: i32 = 128 + 13;

/// Prints a line to standard output, like `println!`. Where that is not possible the program ends: quietly if
/// the reader has gone away, else with an error.
macro_rules! say {
    ($($text:tt)*) => {
        $crate::out::line(format_args!($($text)*))
    };
}

/// Prints a value as JSON, for people and for `jq`.
pub fn json(value: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(value);
    let text = text.map_err(|e| Failure::Usage(format!("the result cannot be written: {e}")))?;
    say!("{text}");
    Ok(())
}

pub fn line(text: Arguments) {
    printed(writeln!(stdout(), "{text}"));
}

/// Prints a part of a line at once.
#[cfg(feature = "text")]
pub fn piece(text: &str) {
    let mut out = stdout();
    printed(out.write_all(text.as_bytes()).and_then(|()| out.flush()));
}

/// Ends the program where something could not be printed.
fn printed(result: std::io::Result<()>) {
    if let Err(error) = result {
        if error.kind() == ErrorKind::BrokenPipe {
            exit(READER_GONE);
        }
        eprintln!("error: nothing can be printed: {error}");
        exit(i32::from(crate::NO_FILE));
    }
}
