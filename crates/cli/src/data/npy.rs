//! numpy's `.npy` and `.npz`.

use std::fs::File;
use std::io::{BufReader, BufWriter, Read};
use std::path::Path;
use std::sync::Arc;

use kilim::core::tensor::{AlignedBytes, Element, element_count};
use kilim::{DType, Error, ErrorCode, Result, Tensor};
use npyz::num_complex::Complex;
use npyz::{DType as Descr, NpyFile, Order, TypeChar, WriterBuilder};

use super::io_error;

/// The tensor of a `.npy` file.
pub fn read(file: &Path) -> Result<Tensor> {
    let reader = BufReader::new(File::open(file).map_err(|e| io_error(file, e))?);
    decode(reader).map_err(|e| e.with_input(file.display()))
}

/// The only tensor of a `.npz` file.
pub fn read_only(file: &Path) -> Result<Tensor> {
    let names = names(file)?;
    match names.as_slice() {
        [name] => read_named(file, name),
        _ => Err(Error::new(
            ErrorCode::Input,
            format!("`{}` holds {} arrays", file.display(), names.len()),
        )
        .with_expected("one")),
    }
}

/// The names of the arrays of a `.npz` file.
pub fn names(file: &Path) -> Result<Vec<String>> {
    let archive = npyz::npz::NpzArchive::open(file).map_err(|e| io_error(file, e))?;
    Ok(archive.array_names().map(str::to_string).collect())
}

/// One array of a `.npz` file.
pub fn read_named(file: &Path, name: &str) -> Result<Tensor> {
    let mut archive = npyz::npz::NpzArchive::open(file).map_err(|e| io_error(file, e))?;
    let array = archive.by_name(name).map_err(|e| io_error(file, e))?;
    let array = array.ok_or_else(|| io_error(file, format!("it has no array `{name}`")))?;
    decode_file(array).map_err(|e| e.with_input(file.display()))
}

fn decode(reader: impl Read) -> Result<Tensor> {
    decode_file(NpyFile::new(reader).map_err(unreadable)?)
}

fn unreadable(error: std::io::Error) -> Error {
    Error::new(
        ErrorCode::Io,
        match error.kind() {
            std::io::ErrorKind::UnexpectedEof => "the array ends too early".to_string(),
            _ => format!("not a .npy file: {error}"),
        },
    )
}

fn decode_file<R: Read>(file: NpyFile<R>) -> Result<Tensor> {
    let Descr::Plain(descr) = file.dtype() else {
        return Err(Error::new(ErrorCode::DType, "records are not tensors"));
    };
    let kind = (descr.type_char(), descr.size_field());
    let dtype = match kind {
        (TypeChar::Float, 4) => DType::F32,
        (TypeChar::Float, 8) => DType::F64,
        (TypeChar::Float, 2) => DType::F16,
        (TypeChar::Int, 1) => DType::I8,
        (TypeChar::Int, 2) => DType::I16,
        (TypeChar::Int, 4) => DType::I32,
        (TypeChar::Int, 8) => DType::I64,
        (TypeChar::Uint, 1) => DType::U8,
        (TypeChar::Uint, 2) => DType::U16,
        (TypeChar::Uint, 4) => DType::U32,
        (TypeChar::Uint, 8) => DType::U64,
        (TypeChar::Bool, 1) => DType::Bool,
        (TypeChar::Complex, 8) => DType::C64,
        (TypeChar::Complex, 16) => DType::C128,
        (TypeChar::UnicodeStr | TypeChar::ByteStr, _) => DType::String,
        _ => {
            return Err(
                Error::new(ErrorCode::DType, "this numpy type is not supported").with_got(descr),
            );
        }
    };
    let sizes = file.shape().iter().map(|&d| usize::try_from(d));
    let sizes = sizes.collect::<std::result::Result<Vec<usize>, _>>();
    let shape = sizes.map_err(|e| Error::new(ErrorCode::Limit, format!("a dimension: {e}")))?;
    if file.order() == Order::Fortran && shape.len() > 1 {
        let reversed: Vec<usize> = shape.iter().rev().copied().collect();
        return row_major(&elements(file, dtype, &reversed)?, &shape);
    }
    elements(file, dtype, &shape)
}

/// An array in Fortran order, which lies there with its axes reversed, in C order.
fn row_major(columns: &Tensor, shape: &[usize]) -> Result<Tensor> {
    let dtype = columns.dtype();
    if dtype == DType::String {
        return Err(Error::new(ErrorCode::Io, "texts are in Fortran order")
            .with_hint("save the array with numpy.ascontiguousarray"));
    }
    let (from, size) = (columns.bytes(), dtype.size());
    let mut to = AlignedBytes::zeroed(from.len())?;
    let mut index = vec![0; shape.len()];
    for element in from.chunks_exact(size) {
        let at = index.iter().zip(shape).fold(0, |at, (i, n)| at * n + i);
        to.as_mut_slice()[at * size..][..size].copy_from_slice(element);
        for (i, &n) in index.iter_mut().zip(shape) {
            *i += 1;
            if *i < n {
                break;
            }
            *i = 0;
        }
    }
    Tensor::from_bytes(dtype, shape, Arc::new(to))
}

/// The elements in the order of the file.
fn elements<R: Read>(file: NpyFile<R>, dtype: DType, shape: &[usize]) -> Result<Tensor> {
    let count = element_count(shape)?;
    macro_rules! collect {
        ($t:ty) => {{
            let data = file.into_vec::<$t>().map_err(unreadable)?;
            if data.len() != count {
                return Err(unreadable(std::io::ErrorKind::UnexpectedEof.into()));
            }
            Tensor::from_slice(shape, &data)
        }};
    }
    match dtype {
        DType::F32 => collect!(f32),
        DType::F64 => collect!(f64),
        DType::F16 => {
            let data = file.into_vec::<npyz::half::f16>().map_err(unreadable)?;
            let bits: Vec<u8> = data
                .iter()
                .flat_map(|v| v.to_bits().to_le_bytes())
                .collect();
            Tensor::from_raw(DType::F16, shape, &bits)
        }
        DType::I8 => collect!(i8),
        DType::I16 => collect!(i16),
        DType::I32 => collect!(i32),
        DType::I64 => collect!(i64),
        DType::U8 => collect!(u8),
        DType::U16 => collect!(u16),
        DType::U32 => collect!(u32),
        DType::U64 => collect!(u64),
        DType::Bool => {
            let data = file.into_vec::<bool>().map_err(unreadable)?;
            Tensor::from_bools(shape, &data)
        }
        DType::C64 => {
            let data = file.into_vec::<Complex<f32>>().map_err(unreadable)?;
            from_parts(dtype, shape, data.into_iter().flat_map(|z| [z.re, z.im]))
        }
        DType::C128 => {
            let data = file.into_vec::<Complex<f64>>().map_err(unreadable)?;
            from_parts(dtype, shape, data.into_iter().flat_map(|z| [z.re, z.im]))
        }
        DType::String => {
            let texts = file.into_vec::<String>().map_err(unreadable)?;
            let texts: Vec<Arc<str>> = texts.into_iter().map(Arc::from).collect();
            Tensor::from_texts(shape, texts)
        }
        _ => Err(Error::new(
            ErrorCode::DType,
            format!("numpy has no {dtype}"),
        )),
    }
}

/// Writes tensors as a `.npz` file: what numpy has no type for as `float32`, integers of less than a
/// byte as `int8`.
pub fn write_all(file: &Path, tensors: &[(String, Tensor)]) -> Result<()> {
    let out = File::create(file).map_err(|e| io_error(file, e))?;
    let mut archive = npyz::npz::NpzWriter::new(BufWriter::new(out));
    for (name, tensor) in tensors {
        let shape: Vec<u64> = tensor.shape().iter().map(|&d| d as u64).collect();
        macro_rules! put {
            ($data:expr) => {{
                let data = $data;
                archive
                    .array(name, Default::default())
                    .map_err(|e| io_error(file, e))?
                    .default_dtype()
                    .shape(&shape)
                    .begin_nd()
                    .and_then(|mut w| {
                        w.extend(data)?;
                        w.finish()
                    })
                    .map_err(|e| io_error(file, e))?;
            }};
        }
        match tensor.dtype() {
            DType::F32 => put!(slice::<f32>(tensor)?),
            DType::F64 => put!(slice::<f64>(tensor)?),
            DType::I8 => put!(slice::<i8>(tensor)?),
            DType::I16 => put!(slice::<i16>(tensor)?),
            DType::I32 => put!(slice::<i32>(tensor)?),
            DType::I64 => put!(slice::<i64>(tensor)?),
            DType::U8 => put!(slice::<u8>(tensor)?),
            DType::U16 => put!(slice::<u16>(tensor)?),
            DType::U32 => put!(slice::<u32>(tensor)?),
            DType::U64 => put!(slice::<u64>(tensor)?),
            DType::Bool => put!(tensor.bytes().iter().map(|&b| b != 0)),
            DType::C64 => {
                let parts = tensor.to_f64s()?;
                let pairs = parts.chunks_exact(2);
                put!(pairs.map(|z| Complex::new(z[0] as f32, z[1] as f32)));
            }
            DType::C128 => {
                let parts = tensor.to_f64s()?;
                put!(parts.chunks_exact(2).map(|z| Complex::new(z[0], z[1])));
            }
            DType::String => {
                let texts = tensor.texts()?;
                let longest = texts.iter().map(|t| t.chars().count()).max().unwrap_or(0);
                let descr = format!("<U{}", longest.max(1));
                let descr = descr.parse().map_err(|e| io_error(file, e))?;
                let array = archive.array(name, Default::default());
                array
                    .map_err(|e| io_error(file, e))?
                    .dtype(Descr::Plain(descr))
                    .shape(&shape)
                    .begin_nd()
                    .and_then(|mut w| {
                        w.extend(texts.iter().map(|t| t.to_string()))?;
                        w.finish()
                    })
                    .map_err(|e| io_error(file, e))?;
            }
            dtype if dtype.is_narrow_integer() => {
                put!(tensor.to_i64s()?.into_iter().map(|v| v as i8))
            }
            _ => put!(tensor.to_f64s()?.into_iter().map(|v| v as f32)),
        }
    }
    Ok(())
}

/// Complex numbers from their real and imaginary parts in turn.
fn from_parts<T: Element>(
    dtype: DType,
    shape: &[usize],
    parts: impl Iterator<Item = T>,
) -> Result<Tensor> {
    let parts: Vec<T> = parts.collect();
    let flat = Tensor::from_slice(&[parts.len()], &parts)?;
    Tensor::from_raw(dtype, shape, flat.bytes())
}

fn slice<T: Element>(tensor: &Tensor) -> Result<impl Iterator<Item = T> + '_> {
    Ok(tensor.as_slice::<T>()?.iter().copied())
}
