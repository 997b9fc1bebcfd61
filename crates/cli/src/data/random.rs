//! Inputs made up from a seed.

use std::sync::Arc;

use half::{bf16, f16};
use kilim::core::narrow::{self, Narrowing};
use kilim::core::tensor::{AlignedBytes, byte_count};
use kilim::{DType, Error, ErrorCode, Fact, Result, Tensor};

/// Uniform in -1..1 for floating-point and complex types, 0 or 1 for the others, `a` or `b` for
/// strings; free dimensions become 1.
///
/// # Errors
/// `Input` where the model leaves the element type or the shape open, `Limit` where the machine has no
/// memory for it.
pub fn tensor(fact: &Fact, seed: u64) -> Result<Tensor> {
    let unknown = || {
        Error::new(
            ErrorCode::Input,
            "the model does not say what this input is; give it as a file",
        )
    };
    let dtype = fact.dtype.ok_or_else(unknown)?;
    let dims = &fact.shape.as_ref().ok_or_else(unknown)?.0;
    let shape: Vec<usize> = dims.iter().map(|d| d.known().unwrap_or(1)).collect();
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut unit = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f32 / (1u64 << 24) as f32
    };
    if dtype == DType::String {
        let (a, b): (Arc<str>, Arc<str>) = ("a".into(), "b".into());
        let mut texts = Tensor::zeros(dtype, &shape)?.texts()?.to_vec();
        texts.fill_with(|| if unit() < 0.5 { a.clone() } else { b.clone() });
        return Tensor::from_texts(&shape, texts);
    }
    let mut bytes = AlignedBytes::zeroed(byte_count(dtype, &shape)?)?;
    let number = if dtype.is_complex() {
        dtype.size() / 2
    } else {
        dtype.size()
    };
    for to in bytes.as_mut_slice().chunks_exact_mut(number) {
        if !(dtype.is_float() || dtype.is_narrow_float() || dtype.is_complex()) {
            to[0] = u8::from(unit() < 0.5);
            continue;
        }
        let v = unit() * 2.0 - 1.0;
        match dtype {
            DType::F64 | DType::C128 => to.copy_from_slice(&f64::from(v).to_le_bytes()),
            DType::F16 => to.copy_from_slice(&f16::from_f32(v).to_le_bytes()),
            DType::BF16 => to.copy_from_slice(&bf16::from_f32(v).to_le_bytes()),
            _ if dtype.is_narrow_float() => {
                to[0] = narrow::encode(dtype, v.into(), Narrowing::default());
            }
            _ => to.copy_from_slice(&v.to_le_bytes()),
        }
    }
    Tensor::from_bytes(dtype, &shape, Arc::new(bytes))
}
