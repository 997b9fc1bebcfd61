//! What a library says of its backend.

use kilim_core::backend::{BackendConfig, BackendId, Description, Grade, Half, Memory, Speed};
use kilim_core::{DType, Error, ErrorCode, Result};
use kilim_plugin_abi as abi;

use crate::encode::dtype;
use crate::library::{Library, owned};

/// Asks the library; what it does not say has defaults.
///
/// # Errors
/// `NoBackend` where an alignment, a speed or a time cannot be.
pub fn describe(id: BackendId, library: &Library) -> Result<Description> {
    let mut told = abi::Description {
        device: std::ptr::null(),
        dtype_count: 0,
        dtypes: std::ptr::null(),
        alignment: 64,
        max_tensor_bytes: u64::MAX,
        max_arena_bytes: u64::MAX,
        flops_per_second: 1e10,
        bytes_per_second: 1e10,
        kernel_start: 1e-6,
        transfer_start: 1e-6,
        transfer_bytes_per_second: 1e10,
    };
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
    let f16 = match dtypes.contains(&(DType::F16, Grade::Fast)) {
        true => Half::Kept,
        false => Half::Off,
    };
    Ok(Description {
        device: device.unwrap_or_else(|| "a plug-in".to_string()),
        id,
        memory: Memory::Device,
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
        config: BackendConfig {
            f16,
            ..BackendConfig::default()
        },
    })
}
