//! The elements behind a header, as a tensor in the machine's order of bytes and in C order.

use std::io::Read;
use std::sync::Arc;

use kilim::core::interrupt::{Interrupt, Meter};
use kilim::core::tensor::{AlignedBytes, element_count};
use kilim::{DType, Error, ErrorCode, Result, Tensor};

use super::header::{Element, Header};
use super::unreadable;
use crate::data::DataLimits;

/// Bytes of a letter of a text in an array.
const LETTER: usize = 4;

impl Element {
    /// Bytes in the file; `None` where a size in the file is too large for the machine.
    fn size(self) -> Option<usize> {
        match self {
            Element::Number(dtype) => Some(dtype.size()),
            Element::Bytes(bytes) => Some(bytes),
            Element::Letters(letters) => letters.checked_mul(LETTER),
        }
    }

    /// Bytes of what an order of bytes concerns: complex numbers are two.
    fn unit(self) -> usize {
        match self {
            Element::Number(dtype) if dtype.is_complex() => dtype.size() / 2,
            Element::Number(dtype) => dtype.size(),
            Element::Bytes(_) => 1,
            Element::Letters(_) => LETTER,
        }
    }

    /// Bytes that a handle of an element takes in memory, beside the element.
    fn handle(self) -> usize {
        match self {
            Element::Number(_) => 0,
            Element::Bytes(_) | Element::Letters(_) => size_of::<Arc<str>>(),
        }
    }
}

/// Reads what `header` announces; `left` bytes are there.
///
/// # Errors
/// `Io` where bytes are missing or are no bools or texts; `Limit` for more bytes than `limits` say or than
/// the machine has memory for.
pub fn read(
    header: &Header,
    reader: &mut dyn Read,
    left: u64,
    limits: &DataLimits,
) -> Result<Tensor> {
    let count = element_count(&header.shape)?;
    let element = header.element;
    let bytes = element.size().and_then(|size| count.checked_mul(size));
    let handles = count.checked_mul(element.handle());
    if bytes.is_none_or(|bytes| bytes as u64 > left) {
        return Err(unreadable(std::io::ErrorKind::UnexpectedEof.into()));
    }
    let held = bytes.zip(handles).and_then(|(a, b)| a.checked_add(b));
    limits.check("the array", held)?;
    let mut raw = AlignedBytes::zeroed(bytes.unwrap_or_default())?;
    reader.read_exact(raw.as_mut_slice()).map_err(unreadable)?;
    if header.big_endian && element.unit() > 1 {
        let units = raw.as_mut_slice().chunks_exact_mut(element.unit());
        units.for_each(<[u8]>::reverse);
    }
    let columns = header.fortran && header.shape.len() > 1;
    match element {
        Element::Number(dtype) => {
            let raw = match columns {
                true => row_major(&raw, dtype.size(), &header.shape)?,
                false => raw,
            };
            numbers(dtype, &header.shape, raw)
        }
        Element::Bytes(_) | Element::Letters(_) => {
            let size = element.size().unwrap_or_default();
            let mut texts = texts(element, size, raw.as_slice(), count)?;
            if columns {
                let mut rows = reserved(count)?;
                rows.extend(texts.iter().cloned());
                each_place(&header.shape, |from, to| rows[to] = texts[from].clone());
                texts = rows;
            }
            Tensor::from_texts(&header.shape, texts)
        }
    }
}

fn numbers(dtype: DType, shape: &[usize], raw: AlignedBytes) -> Result<Tensor> {
    let wrong = |byte: &&u8| dtype == DType::Bool && **byte > 1;
    if let Some(byte) = raw.as_slice().iter().find(wrong) {
        let message = "a bool of the array is neither 0 nor 1";
        return Err(Error::new(ErrorCode::Io, message).with_got(byte));
    }
    Tensor::from_bytes(dtype, shape, Arc::new(raw))
}

/// Elements of `size` bytes in Fortran order, in C order.
fn row_major(columns: &AlignedBytes, size: usize, shape: &[usize]) -> Result<AlignedBytes> {
    let mut rows = AlignedBytes::zeroed(columns.len())?;
    let (from, to) = (columns.as_slice(), rows.as_mut_slice());
    each_place(shape, |old, new| {
        to[new * size..][..size].copy_from_slice(&from[old * size..][..size]);
    });
    Ok(rows)
}

/// Calls `place` for every element with its number in Fortran order and in C order.
fn each_place(shape: &[usize], mut place: impl FnMut(usize, usize)) {
    let mut index = vec![0; shape.len()];
    for old in 0..shape.iter().product() {
        let new = index.iter().zip(shape).fold(0, |at, (i, n)| at * n + i);
        place(old, new);
        for (i, &n) in index.iter_mut().zip(shape) {
            *i += 1;
            if *i < n {
                break;
            }
            *i = 0;
        }
    }
}

/// Room for so many texts.
fn reserved(count: usize) -> Result<Vec<Arc<str>>> {
    let mut texts = Vec::new();
    texts.try_reserve_exact(count).map_err(|_| {
        let message = format!("the machine has no memory for {count} texts");
        Error::new(ErrorCode::Limit, message)
    })?;
    Ok(texts)
}

/// Texts of `size` bytes each, without the zeros at their ends.
fn texts(element: Element, size: usize, raw: &[u8], count: usize) -> Result<Vec<Arc<str>>> {
    let none: Arc<str> = Arc::from("");
    let mut texts = reserved(count)?;
    for i in 0..count {
        let raw = &raw[i * size..][..size];
        let end = raw.iter().rposition(|&byte| byte != 0);
        let Some(end) = end else {
            texts.push(none.clone());
            continue;
        };
        let text = match element {
            Element::Letters(_) => letters(raw),
            _ => std::str::from_utf8(&raw[..=end]).ok().map(str::to_string),
        };
        let text = text.ok_or_else(|| {
            let message = format!("the text {i} of the array is not one of Unicode");
            Error::new(ErrorCode::Io, message)
        })?;
        texts.push(text.into());
    }
    Ok(texts)
}

/// A text of four bytes a letter.
fn letters(raw: &[u8]) -> Option<String> {
    let (letters, _) = raw.as_chunks::<LETTER>();
    let text: Option<String> = letters
        .iter()
        .map(|letter| char::from_u32(u32::from_le_bytes(*letter)))
        .collect();
    text.map(|text| text.trim_end_matches('\0').to_string())
}

/// The bytes of a tensor's elements in C order, and how numpy calls their type: what numpy has no type
/// for becomes `float32`, integers of less than a byte `int8`.
///
/// # Errors
/// `Limit` where the machine has no memory for them.
pub fn written(tensor: &Tensor) -> Result<(String, AlignedBytes)> {
    let descr = match tensor.dtype() {
        DType::F16 => "<f2",
        DType::F32 => "<f4",
        DType::F64 => "<f8",
        DType::I8 => "|i1",
        DType::I16 => "<i2",
        DType::I32 => "<i4",
        DType::I64 => "<i8",
        DType::U8 => "|u1",
        DType::U16 => "<u2",
        DType::U32 => "<u4",
        DType::U64 => "<u8",
        DType::Bool => "|b1",
        DType::C64 => "<c8",
        DType::C128 => "<c16",
        DType::String => return written_texts(tensor.texts()?),
        dtype if dtype.is_narrow_integer() => {
            let values = tensor.to_i64s()?;
            let bytes = values.iter().map(|&v| [v as i8 as u8]);
            return Ok(("|i1".to_string(), collected(bytes, values.len())?));
        }
        _ => {
            let values = tensor.to_f64s()?;
            let bytes = values.iter().map(|&v| (v as f32).to_le_bytes());
            return Ok(("<f4".to_string(), collected(bytes, values.len())?));
        }
    };
    Ok((
        descr.to_string(),
        tensor.copy_bytes(&Meter::new(&Interrupt::NEVER))?,
    ))
}

fn collected<const N: usize>(
    elements: impl Iterator<Item = [u8; N]>,
    count: usize,
) -> Result<AlignedBytes> {
    let mut bytes = AlignedBytes::zeroed(count.saturating_mul(N))?;
    let (places, _) = bytes.as_mut_slice().as_chunks_mut::<N>();
    for (place, element) in places.iter_mut().zip(elements) {
        *place = element;
    }
    Ok(bytes)
}

fn written_texts(texts: &[Arc<str>]) -> Result<(String, AlignedBytes)> {
    // numpy reads no type of no letters from a file.
    let longest = texts.iter().map(|t| t.chars().count()).max().unwrap_or(0);
    let letters = longest.max(1);
    let size = letters.saturating_mul(LETTER);
    let mut bytes = AlignedBytes::zeroed(texts.len().saturating_mul(size))?;
    for (place, text) in bytes.as_mut_slice().chunks_exact_mut(size).zip(texts) {
        let (letters, _) = place.as_chunks_mut::<LETTER>();
        for (place, letter) in letters.iter_mut().zip(text.chars()) {
            *place = u32::from(letter).to_le_bytes();
        }
    }
    Ok((format!("<U{letters}"), bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANY: DataLimits = DataLimits { bytes: 1 << 20 };

    fn header(element: Element, shape: &[usize]) -> Header {
        Header {
            element,
            big_endian: false,
            fortran: false,
            shape: shape.to_vec(),
        }
    }

    fn of(header: &Header, raw: &[u8]) -> Result<Tensor> {
        read(header, &mut &raw[..], raw.len() as u64, &MANY)
    }

    #[test]
    fn sizes_are_checked_before_memory_is_asked_for() {
        let huge = 1 << 40;
        for (element, shape, left, code) in [
            // No byte of it is in the file.
            (Element::Number(DType::F32), &[huge][..], 64, ErrorCode::Io),
            // A pipe may have all.
            (
                Element::Number(DType::F32),
                &[huge],
                u64::MAX,
                ErrorCode::Limit,
            ),
            (Element::Letters(0), &[huge], 0, ErrorCode::Limit),
            (Element::Bytes(0), &[huge], 0, ErrorCode::Limit),
            (Element::Letters(usize::MAX), &[2], 64, ErrorCode::Io),
            (Element::Bytes(huge), &[1], u64::MAX, ErrorCode::Limit),
            (
                Element::Number(DType::U8),
                &[huge, huge],
                64,
                ErrorCode::Limit,
            ),
        ] {
            let header = header(element, shape);
            let error = read(&header, &mut &[0; 64][..], left, &MANY).unwrap_err();
            assert_eq!(error.code(), code, "{header:?}: {error}");
        }
    }

    #[test]
    fn texts_are_read_in_either_form_and_order() {
        let words = |texts: &[&str]| texts.iter().map(|&t| t.into()).collect::<Vec<Arc<str>>>();
        let bytes = header(Element::Bytes(3), &[3]);
        let read = of(&bytes, b"ab\0\0\0\0xyz").unwrap();
        assert_eq!(read.texts().unwrap(), words(&["ab", "", "xyz"]));
        let wide: Vec<u8> = "äb\0c\0\0ef\0g\0\0"
            .chars()
            .flat_map(|c| u32::from(c).to_le_bytes())
            .collect();
        let mut letters = header(Element::Letters(3), &[2, 2]);
        let read = of(&letters, &wide).unwrap();
        assert_eq!(read.texts().unwrap(), words(&["äb", "c", "ef", "g"]));
        letters.fortran = true;
        let read = of(&letters, &wide).unwrap();
        assert_eq!(read.texts().unwrap(), words(&["äb", "ef", "c", "g"]));
        letters.big_endian = true;
        let big: Vec<u8> = wide
            .chunks(4)
            .flat_map(|c| c.iter().rev().copied())
            .collect();
        let read = of(&letters, &big).unwrap();
        assert_eq!(read.texts().unwrap()[1].as_ref(), "ef");
        let empty = of(&header(Element::Letters(0), &[3]), &[]).unwrap();
        assert_eq!(empty.texts().unwrap(), words(&["", "", ""]));
        let error = of(&bytes, b"\xff\0\0\0\0\0\0\0\0").unwrap_err();
        assert_eq!(error.code(), ErrorCode::Io);
        let error = of(&letters, &[0xff; 48]).unwrap_err();
        assert_eq!(error.code(), ErrorCode::Io);
    }

    #[test]
    fn numbers_are_read_in_any_order_of_bytes() {
        let mut complex = header(Element::Number(DType::C64), &[1]);
        complex.big_endian = true;
        let raw = [1.5f32, -2.0].map(f32::to_be_bytes).concat();
        assert_eq!(of(&complex, &raw).unwrap().to_f64s().unwrap(), [1.5, -2.0]);
        let bools = header(Element::Number(DType::Bool), &[2]);
        assert_eq!(of(&bools, &[1, 0]).unwrap().read().unwrap(), [1, 0]);
        assert_eq!(of(&bools, &[1, 2]).unwrap_err().code(), ErrorCode::Io);
        let cut = header(Element::Number(DType::I64), &[2]);
        assert_eq!(of(&cut, &[0; 15]).unwrap_err().code(), ErrorCode::Io);
        assert!(of(&cut, &[0; 17]).is_ok());
    }

    #[test]
    fn what_is_written_is_read() {
        let texts = Tensor::from_texts(&[2, 1], vec!["ä".into(), "xyz".into()]).unwrap();
        let (descr, bytes) = written(&texts).unwrap();
        assert_eq!(descr, "<U3");
        let read = of(&header(Element::Letters(3), &[2, 1]), bytes.as_slice()).unwrap();
        assert_eq!(read.texts().unwrap(), texts.texts().unwrap());
        let narrow = Tensor::from_raw(DType::I4, &[2], &[0x07, 0xff]).unwrap();
        let (descr, bytes) = written(&narrow).unwrap();
        assert_eq!((&descr[..], bytes.as_slice()), ("|i1", &[7, 0xff][..]));
        let half = Tensor::from_raw(DType::BF16, &[1], &[0x80, 0x3f]).unwrap();
        let (descr, bytes) = written(&half).unwrap();
        assert_eq!(descr, "<f4");
        assert_eq!(bytes.as_slice(), 1f32.to_le_bytes());
    }
}
