//! Tensors from and to files, and inputs made up.

pub mod npy;
pub mod picture;
pub mod random;

use std::path::Path;

use kilim::core::narrow::{self, Narrowing};
use kilim::{DType, Error, ErrorCode, Fact, Port, Tensor};

use crate::Failure;

/// Makes the inputs of a model from `NAME=SOURCE` arguments; what is not given is random.
pub fn inputs(
    ports: &[Port],
    given: &[String],
    seed: u64,
) -> Result<Vec<(String, Tensor)>, Failure> {
    let mut sources = Vec::with_capacity(given.len());
    for argument in given {
        let (name, source) = match argument.split_once('=') {
            Some((name, source)) => (name.to_string(), source),
            None if ports.len() == 1 => (ports[0].name.clone(), argument.as_str()),
            None => {
                return Err(Failure::Usage(format!(
                    "`--input {argument}` is not of the form NAME=FILE or NAME=random"
                )));
            }
        };
        if !ports.iter().any(|p| p.name == name) {
            let names: Vec<_> = ports.iter().map(|p| format!("`{}`", p.name)).collect();
            return Err(Failure::Usage(format!(
                "the model has no input `{name}`; it has {}",
                names.join(", ")
            )));
        }
        sources.push((name, source));
    }
    let mut out = Vec::with_capacity(ports.len());
    for (i, port) in ports.iter().enumerate() {
        let source = sources.iter().find(|(n, _)| *n == port.name).map(|s| s.1);
        let tensor = match source {
            None | Some("random") => random::tensor(&port.fact, seed.wrapping_add(i as u64))?,
            Some(file) => read(&port.fact, Path::new(file))?,
        };
        out.push((port.name.clone(), tensor));
    }
    Ok(out)
}

fn read(fact: &Fact, file: &Path) -> Result<Tensor, Failure> {
    let extension = file.extension().and_then(|e| e.to_str()).unwrap_or("");
    let tensor = match extension.to_ascii_lowercase().as_str() {
        "npy" => npy::read(file)?,
        "npz" => npy::read_only(file)?,
        _ => return Ok(picture::tensor(fact, file)?),
    };
    match fact.dtype {
        Some(dtype) if dtype.is_narrow() => {
            Ok(narrowed(&tensor, dtype).map_err(|e| e.with_input(file.display()))?)
        }
        _ => Ok(tensor),
    }
}

/// Numbers as a type of at most 8 bits, which numpy does not have.
///
/// # Errors
/// `InvalidValue` for integers that do not fit; floating-point numbers are rounded and saturate.
fn narrowed(tensor: &Tensor, dtype: DType) -> kilim::Result<Tensor> {
    let mut bytes = Vec::with_capacity(tensor.len());
    for value in tensor.to_f64s()? {
        let element = match dtype.is_narrow_float() {
            true => narrow::encode(dtype, value, Narrowing::default()),
            false => value as i64 as u8,
        };
        if dtype.is_narrow_integer() && f64::from(narrow::decode(dtype, element)) != value {
            let message = format!("a number does not fit in {dtype}");
            return Err(Error::new(ErrorCode::InvalidValue, message).with_got(value));
        }
        bytes.push(element);
    }
    Tensor::from_raw(dtype, tensor.shape(), &bytes)
}

/// An error about a file.
pub fn io_error(file: &Path, error: impl std::fmt::Display) -> Error {
    Error::new(
        ErrorCode::Io,
        format!("`{}` cannot be read or written: {error}", file.display()),
    )
}
