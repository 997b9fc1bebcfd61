//! Integers of a few bits: a shape, the numbers that occur, and for every weight the place of its number among them (`IDSTDecoder`).

use kilim_core::dtype::DType;
use kilim_core::error::{Error, ErrorCode, Result};
use kilim_core::tensor::Tensor;

use super::scales::Scales;
use crate::mnn::invalid;
use crate::mnn::op::Params;

/// The field of `IDSTQuan` that says how wide the numbers of a shape are.
const WIDE_SHAPE: usize = 11;

/// Dimensions of a shape.
const DIMS: usize = 4;

/// Weights in a buffer. The bits of places follow each other from the highest bit of each byte on.
pub struct Packed {
    bytes: Tensor,
    /// The byte at which places begin.
    at: usize,
    /// The bits of each place; 8 for weights that are stored as they are.
    bits: usize,
    /// The numbers, by place.
    numbers: Vec<i8>,
    /// The numbers themselves where most are the same, which files store apart.
    sparse: Option<Vec<i8>>,
}

/// Reads a buffer from its beginning on.
struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn take(&mut self, len: usize) -> Result<&'a [u8]> {
        let end = self.at.checked_add(len);
        let part = end.and_then(|end| self.bytes.get(self.at..end));
        let part = part.ok_or_else(|| invalid("quantised weights are cut off"))?;
        self.at += len;
        Ok(part)
    }

    fn byte(&mut self) -> Result<u8> {
        Ok(self.take(1)?[0])
    }

    /// The product of a shape, at most `most`.
    fn shape(&mut self, wide: bool, most: usize) -> Result<usize> {
        let dims = usize::from(self.byte()?);
        if dims == 0 || dims > DIMS {
            return Err(invalid("quantised weights have no shape").with_got(dims));
        }
        let mut product = 1_usize;
        for _ in 0..dims {
            let dim = match wide {
                true => self
                    .take(4)?
                    .iter()
                    .rev()
                    .fold(0, |n, &b| n << 8 | usize::from(b)),
                false => self
                    .take(2)?
                    .iter()
                    .rev()
                    .fold(0, |n, &b| n << 8 | usize::from(b)),
            };
            product = product.saturating_mul(dim);
        }
        match product == most {
            true => Ok(product),
            false => Err(invalid("the weights do not fit the operator")
                .with_expected(most)
                .with_got(product)),
        }
    }

    /// The numbers that occur, in order.
    fn numbers(&mut self) -> Result<Vec<i8>> {
        let count = match self.byte()? {
            0 => 256,
            n => usize::from(n),
        };
        let mut numbers: Vec<i8> = self.take(count)?.iter().map(|&b| b as i8).collect();
        numbers.sort_unstable();
        Ok(numbers)
    }
}

/// The place of `bits` bits with number `i`, from the highest bit of a byte on.
fn place(bytes: &[u8], i: usize, bits: usize) -> usize {
    let first = i * bits;
    let pair = |at: usize| usize::from(bytes.get(at).copied().unwrap_or(0));
    let both = pair(first / 8) << 8 | pair(first / 8 + 1);
    both >> (16 - bits - first % 8) & ((1 << bits) - 1)
}

impl Packed {
    /// Reads what stands in front of the places.
    ///
    /// # Errors
    /// `InvalidModel` where the buffer is cut off or of another number of weights.
    pub fn read(kind: i32, buffer: &Tensor, params: &Params, count: usize) -> Result<Packed> {
        if kind == 4 {
            if buffer.len() != count {
                return Err(invalid("the weights do not fit the operator")
                    .with_expected(count)
                    .with_got(buffer.len()));
            }
            return Ok(Packed {
                bytes: buffer.clone(),
                at: 0,
                bits: 8,
                numbers: (0..=255_u8).map(|b| b as i8).collect(),
                sparse: None,
            });
        }
        let mut reader = Reader {
            bytes: buffer.read()?,
            at: 0,
        };
        reader.shape(params.flag(WIDE_SHAPE, false)?, count)?;
        if kind == 2 {
            return Packed::sparse(&mut reader, buffer, params, count);
        }
        let numbers = reader.numbers()?;
        let bits = bits(numbers.len());
        reader.take(room(count, bits)?)?;
        Ok(Packed {
            bytes: buffer.clone(),
            at: reader.at - room(count, bits)?,
            bits,
            numbers,
            sparse: None,
        })
    }

    /// Weights that are 0 but for some: the steps from one of these to the next, and the place of the number of each.
    fn sparse(
        reader: &mut Reader,
        buffer: &Tensor,
        params: &Params,
        count: usize,
    ) -> Result<Packed> {
        let some = reader
            .take(4)?
            .iter()
            .rev()
            .fold(0, |n, &b| n << 8 | usize::from(b));
        let step_bits = usize::from(reader.byte()?);
        if some > count || step_bits > 8 {
            return Err(invalid("quantised weights are garbled"));
        }
        let steps = reader.take(room(some, step_bits)?)?;
        let mut numbers = reader.numbers()?;
        let bits = usize::max(
            1,
            (usize::BITS - (numbers.len() - 1).leading_zeros()) as usize,
        );
        numbers.dedup();
        let places = reader.take(room(some, bits)?)?;
        let mut weights = Vec::new();
        let reserved = weights.try_reserve_exact(count);
        reserved.map_err(|_| Error::new(ErrorCode::Limit, "there is no memory for weights"))?;
        weights.resize(count, 0_i8);
        super::scales::zeros(params, bits, &mut weights)?;
        let mut at = 0;
        for i in 0..some {
            at += if step_bits == 0 {
                0
            } else {
                place(steps, i, step_bits)
            };
            let number = numbers.get(place(places, i, bits));
            match (weights.get_mut(at), number) {
                (Some(weight), Some(&number)) => *weight = number,
                _ => return Err(invalid("quantised weights are garbled")),
            }
        }
        Ok(Packed {
            bytes: buffer.clone(),
            at: 0,
            bits,
            numbers: Vec::new(),
            sparse: Some(weights),
        })
    }

    /// The floats, each `number * scale + offset` of its group.
    pub fn widened(self, shape: &[usize], scales: Scales) -> Result<Tensor> {
        let count = kilim_core::tensor::element_count(shape)?;
        if scales.groups() == 0 || count % scales.groups() != 0 {
            return Err(invalid("the scales do not fit the weights")
                .with_expected(format!("a part of {count}"))
                .with_got(scales.groups()));
        }
        let group = count / scales.groups();
        let Packed {
            bytes,
            at,
            bits,
            numbers,
            sparse,
        } = self;
        bytes.later(DType::F32, shape, move |bytes, from, to| {
            let bytes = bytes.read()?;
            let first = from / 4;
            for (i, to) in (first..).zip(to.chunks_exact_mut(4)) {
                let number = match &sparse {
                    Some(weights) => weights[i],
                    None if bits == 8 => numbers_at(&numbers, usize::from(bytes[at + i])),
                    None => numbers_at(&numbers, place(&bytes[at..], i, bits)),
                };
                to.copy_from_slice(&scales.float(i / group.max(1), number).to_ne_bytes());
            }
            Ok(())
        })
    }
}

/// The number at a place. One that is not there is 0, as in memory that MNN does not write.
fn numbers_at(numbers: &[i8], place: usize) -> i8 {
    numbers.get(place).copied().unwrap_or(0)
}

/// The bits of places among so many numbers.
fn bits(numbers: usize) -> usize {
    usize::max(
        1,
        (usize::BITS - numbers.saturating_sub(1).leading_zeros()) as usize,
    )
}

/// The bytes of so many places.
fn room(count: usize, bits: usize) -> Result<usize> {
    let bits = count.checked_mul(bits);
    Ok(bits.ok_or_else(|| invalid("too many weights"))?.div_ceil(8))
}

#[cfg(test)]
mod tests {
    use super::{bits, place};

    #[test]
    fn places_are_read_from_the_highest_bit_on() {
        let bytes = [0b1011_0010, 0b0110_0001];
        let read = |n| (0..16 / n).map(|i| place(&bytes, i, n)).collect::<Vec<_>>();
        assert_eq!(read(4), [11, 2, 6, 1]);
        assert_eq!(read(3), [5, 4, 4, 6, 0]);
        assert_eq!(read(8), [178, 97]);
        assert_eq!([1, 2, 3, 4, 16, 17, 256].map(bits), [1, 1, 2, 2, 4, 5, 8]);
    }
}
