//! What a library says of its backend.

use kilim_core::backend::{
    BackendConfig, BackendId, DataLayout, Description, Grade, Half, Memory, MemoryKind, Quantized,
    Speed,
};
use kilim_core::{DType, Error, ErrorCode, Result};
use kilim_plugin_abi as abi;

use crate::encode::dtype;
use crate::library::{Library, owned};
use crate::user_memory;

/// What a library says of its backend, and the kinds of the user's memory that it takes. What it does not say has defaults.
///
/// # Errors
/// `NoBackend` where an alignment, a speed or a time cannot be, or a kind that it does not import.
pub fn describe(id: BackendId, library: &Library) -> Result<(Description, Vec<MemoryKind>)> {
    let mut told = abi::Description::UNSAID;
    if let Some(describe) = library.table.describe {
        // SAFETY: a function of the table, with its own `this`.
        unsafe { describe(library.table.this, &raw mut told) };
    }
    let speeds = [
        told.flops_per_second,
        told.bytes_per_second,
        told.transfer_bytes_per_second,
    ];
    let starts = [told.kernel_start, told.transfer_start];
    let sound = told.alignment.is_power_of_two()
        && speeds.iter().all(|s| s.is_finite() && *s > 0.0)
        && starts.iter().all(|s| s.is_finite() && *s >= 0.0);
    if !sound {
        return Err(Error::new(
            ErrorCode::NoBackend,
            format!(
                "the backend `{id}` describes itself with an alignment or a speed that cannot be"
            ),
        ));
    }
    let grades = match told.dtypes.is_null() {
        true => Vec::new(),
        // SAFETY: the backend gives as many grades as it says.
        false => unsafe { std::slice::from_raw_parts(told.dtypes, told.dtype_count) }.to_vec(),
    };
    let grade = |g: &abi::DtypeGrade| {
        let grade = match g.grade {
            abi::STORAGE => Grade::Storage,
            abi::ARITHMETIC => Grade::Arithmetic,
            abi::FAST => Grade::Fast,
            _ => return None,
        };
        Some((dtype(g.dtype)?, grade))
    };
    // SAFETY: strings of the interface end with a zero.
    let device = unsafe { owned(told.device) };
    let dtypes: Vec<_> = grades.iter().filter_map(grade).collect();
    let by_grade = match dtypes.contains(&(DType::F16, Grade::Fast)) {
        true => Half::Kept,
        false => Half::Off,
    };
    let memory = match told.memory {
        abi::MEMORY_DEVICE => Some(Memory::Device),
        abi::MEMORY_HOST if library.table.attach.is_some() => Some(Memory::Host),
        _ => None,
    };
    let config = config(&told, by_grade, library);
    let (config, memory) = config.zip(memory).ok_or_else(|| {
        let message = format!("the backend `{id}` describes a config that cannot be");
        Error::new(ErrorCode::NoBackend, message)
    })?;
    let kinds = user_memory::kinds(&told, memory, library);
    let kinds = kinds.ok_or_else(|| {
        let message = format!("the backend `{id}` describes memory that it cannot import");
        Error::new(ErrorCode::NoBackend, message)
    })?;
    let description = Description {
        device: device.unwrap_or_else(|| "a plug-in".to_string()),
        id,
        memory,
        dtypes,
        alignment: told.alignment,
        max_tensor_bytes: told.max_tensor_bytes,
        max_arena_bytes: told.max_arena_bytes,
        speed: Speed {
            flops_per_second: told.flops_per_second,
            bytes_per_second: told.bytes_per_second,
            kernel_start: told.kernel_start,
            transfer_start: told.transfer_start,
            transfer_bytes_per_second: told.transfer_bytes_per_second,
        },
        software: false,
        config,
    };
    Ok((description, kinds))
}

/// What the library offers; `None` where it names something that the interface does not have.
fn config(told: &abi::Description, by_grade: Half, library: &Library) -> Option<BackendConfig> {
    let layouts = match told.layouts.is_null() {
        true => &[],
        // SAFETY: the backend gives as many layouts as it says.
        false => unsafe { std::slice::from_raw_parts(told.layouts, told.layout_count) },
    };
    let layout = |&number: &i32| match number {
        abi::NCHW => Some(DataLayout::ChannelsFirst),
        abi::NHWC => Some(DataLayout::ChannelsLast),
        _ => None,
    };
    let layouts: Vec<_> = layouts.iter().map(layout).collect::<Option<_>>()?;
    let usual = BackendConfig::default();
    Some(BackendConfig {
        layouts: match layouts.is_empty() {
            true => usual.layouts,
            false => layouts,
        },
        dynamic_tensors: told.dynamic_shapes != 0,
        f16: match told.half {
            abi::HALF_BY_GRADE => by_grade,
            abi::HALF_OFF => Half::Off,
            abi::HALF_CHOSEN => Half::Chosen,
            abi::HALF_KEPT => Half::Kept,
            _ => return None,
        },
        quantized: match told.quantized {
            abi::QUANTIZED_EXACT => Quantized::Exact,
            abi::QUANTIZED_NATIVE => Quantized::Native,
            _ => return None,
        },
        timers: library.table.times.is_some(),
    })
}
