//! Inputs made up from a seed.

use kilim::core::narrow::{self, Narrowing};
use kilim::core::tensor::element_count;
use kilim::{DType, Error, ErrorCode, Fact, Result, Tensor};
use npyz::half::{bf16, f16};

/// Uniform in -1..1 for floating-point and complex types, 0 or 1 for the others, `a` or `b` for
/// strings; free dimensions become 1.
pub fn tensor(fact: &Fact, seed: u64) -> Result<Tensor> {
    let unknown = || {
        Error::new(
            ErrorCode::Input,
            "the model does not say what this input is; give it as a file",
        )
    };
    let dtype = fact.dtype.ok_or_else(unknown)?;
    let shape: Vec<usize> = fact
        .shape
        .as_ref()
        .ok_or_else(unknown)?
        .0
        .iter()
        .map(|d| d.known().unwrap_or(1))
        .collect();
    let count = element_count(&shape)?;
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut unit = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f32 / (1u64 << 24) as f32
    };
    if dtype == DType::String {
        let texts: Vec<std::sync::Arc<str>> = (0..count)
            .map(|_| if unit() < 0.5 { "a" } else { "b" }.into())
            .collect();
        return Tensor::from_texts(&shape, texts);
    }
    let size = dtype.size();
    if dtype.is_float() || dtype.is_narrow_float() || dtype.is_complex() {
        let parts = if dtype.is_complex() { 2 } else { 1 };
        let mut bytes = Vec::with_capacity(count * size);
        for _ in 0..count * parts {
            let v = unit() * 2.0 - 1.0;
            match dtype {
                DType::F64 | DType::C128 => bytes.extend(f64::from(v).to_le_bytes()),
                DType::F16 => bytes.extend(f16::from_f32(v).to_le_bytes()),
                DType::BF16 => bytes.extend(bf16::from_f32(v).to_le_bytes()),
                _ if dtype.is_narrow_float() => {
                    bytes.push(narrow::encode(dtype, v.into(), Narrowing::default()));
                }
                _ => bytes.extend(v.to_le_bytes()),
            }
        }
        return Tensor::from_raw(dtype, &shape, &bytes);
    }
    let mut bytes = vec![0u8; count * size];
    for element in bytes.chunks_exact_mut(size) {
        element[0] = u8::from(unit() < 0.5);
    }
    Tensor::from_raw(dtype, &shape, &bytes)
}
