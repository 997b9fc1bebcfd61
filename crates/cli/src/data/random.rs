//! Inputs made up from a seed.

use kilim::core::tensor::element_count;
use kilim::{DType, Error, ErrorCode, Fact, Result, Tensor};

/// Uniform in -1..1 for floating-point types, 0 or 1 for the others, `a` or `b` for strings; free
/// dimensions become 1.
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
    if dtype.is_float() {
        let values: Vec<f32> = (0..count).map(|_| unit() * 2.0 - 1.0).collect();
        return match dtype {
            DType::F32 => Tensor::from_slice(&shape, &values),
            DType::F64 => {
                let wide: Vec<f64> = values.into_iter().map(f64::from).collect();
                Tensor::from_slice(&shape, &wide)
            }
            _ => Err(Error::new(
                ErrorCode::DType,
                "random data of this type is not offered; give the input as a file",
            )
            .with_got(dtype)),
        };
    }
    let size = dtype.size();
    let mut bytes = vec![0u8; count * size];
    for element in bytes.chunks_exact_mut(size) {
        element[0] = u8::from(unit() < 0.5);
    }
    Tensor::from_raw(dtype, &shape, &bytes)
}
