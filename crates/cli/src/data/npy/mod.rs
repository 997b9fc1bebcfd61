//! numpy's `.npy` and `.npz`.

mod archive;
mod elements;
mod header;

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use kilim::{Error, ErrorCode, Result, Tensor};

use super::{DataLimits, io_error};
pub use archive::{names, read_named, write_all};
use header::Header;

/// The tensor of a `.npy` file.
///
/// # Errors
/// `Io` for a file that is none or too short, `DType` for elements that are no tensor's, `Limit` for an
/// array that is larger than `limits` say or than the machine has memory for.
pub fn read(file: &Path, limits: &DataLimits) -> Result<Tensor> {
    let open = || {
        let opened = File::open(file)?;
        let about = opened.metadata()?;
        // Of a pipe nobody knows how much comes.
        let length = if about.is_file() {
            about.len()
        } else {
            u64::MAX
        };
        Ok((BufReader::new(opened), length))
    };
    let (mut reader, length) = open().map_err(|e: std::io::Error| io_error(file, e))?;
    decode(&mut reader, length, limits).map_err(|e| e.with_input(file.display()))
}

/// The only tensor of a `.npz` file.
///
/// # Errors
/// `Input` where it holds another number of arrays; else as [`read`].
pub fn read_only(file: &Path, limits: &DataLimits) -> Result<Tensor> {
    let names = names(file)?;
    match names.as_slice() {
        [name] => read_named(file, name, limits),
        _ => {
            let message = format!("`{}` holds {} arrays", file.display(), names.len());
            Err(Error::new(ErrorCode::Input, message).with_expected("one"))
        }
    }
}

/// The array that comes next of `reader`, where `length` bytes are left.
fn decode(reader: &mut dyn Read, length: u64, limits: &DataLimits) -> Result<Tensor> {
    let (header, begin) = Header::read(reader)?;
    elements::read(&header, reader, length.saturating_sub(begin), limits)
}

/// The file is not what its name says, or is cut off.
fn unreadable(error: std::io::Error) -> Error {
    let what = match error.kind() {
        std::io::ErrorKind::UnexpectedEof => "the array ends too early".to_string(),
        _ => format!("not a .npy file: {error}"),
    };
    Error::new(ErrorCode::Io, what)
}
