//! Tensors from and to files, and inputs made up.

pub mod npy;
pub mod picture;
pub mod random;
pub mod source;

use std::path::Path;

use kilim::core::narrow::{self, Narrowing};
use kilim::{DType, Error, ErrorCode, Tensor};

/// What files of data may take.
#[derive(clap::Args, Clone, Copy, Debug)]
pub struct DataLimits {
    /// The most bytes that one array or picture may take in memory, whatever its file says.
    #[arg(long = "max-data-bytes", value_name = "N", default_value_t = DataLimits::default().bytes)]
    pub bytes: usize,
}

impl Default for DataLimits {
    /// A GiB.
    fn default() -> Self {
        DataLimits { bytes: 1 << 30 }
    }
}

impl DataLimits {
    /// Whether `what`, which takes so many bytes, may be read; `None` is more than the machine can count.
    ///
    /// # Errors
    /// `Limit` where it may not.
    pub fn check(&self, what: &str, bytes: Option<usize>) -> kilim::Result<()> {
        if bytes.is_some_and(|bytes| bytes <= self.bytes) {
            return Ok(());
        }
        let got = bytes.map_or("more".to_string(), |bytes| format!("{bytes} bytes"));
        Err(Error::new(ErrorCode::Limit, format!("{what} is too large"))
            .with_expected(format!("at most {} bytes", self.bytes))
            .with_got(got)
            .with_hint("allow more with --max-data-bytes"))
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
