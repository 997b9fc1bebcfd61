//! What a page's backend says of itself.

use js_sys::Array;
use kilim_core::backend::{
    BackendConfig, BackendId, DataLayout, Description, Grade, Half, Memory, Speed,
};
use kilim_core::error::value_error;
use kilim_core::{DType, Result};
use wasm_bindgen::{JsCast, JsValue};

use crate::convert::{field, malformed};

/// The description of `{id, device, types: [[type, grade]], layout, maxTensorBytes?, speed}`.
///
/// # Errors
/// `InvalidValue` where a field is of another form, or a speed cannot be.
pub fn describe(given: &JsValue) -> Result<Description> {
    let text = |name: &str| {
        let text = field(given, name).and_then(|v| v.as_string());
        text.ok_or_else(|| malformed(&format!("`{name}` of a backend"), "a string"))
    };
    let types = field(given, "types").and_then(|t| t.dyn_into::<Array>().ok());
    let types = types.ok_or_else(|| malformed("`types` of a backend", "an array"))?;
    let dtypes: Vec<(DType, Grade)> = types.iter().map(|t| graded(&t)).collect::<Result<_>>()?;
    let layout = DataLayout::parse(&text("layout")?)
        .ok_or_else(|| malformed("`layout` of a backend", "`NCHW` or `NHWC`"))?;
    let speed = speed(&field(given, "speed").unwrap_or_default());
    if !speed.is_possible() {
        return Err(
            value_error("the backend describes itself with a speed that cannot be")
                .with_expected("rates above 0, times of at least 0"),
        );
    }
    let most = field(given, "maxTensorBytes").and_then(|m| m.as_f64());
    let f16 = match dtypes.contains(&(DType::F16, Grade::Fast)) {
        true => Half::Kept,
        false => Half::Off,
    };
    Ok(Description {
        id: BackendId::from(text("id")?.as_str()),
        device: text("device")?,
        memory: Memory::Device,
        dtypes,
        alignment: 64,
        max_tensor_bytes: most.map_or(u64::MAX, |most| most as u64),
        max_arena_bytes: u64::MAX,
        speed,
        config: BackendConfig {
            layouts: vec![layout],
            f16,
            ..BackendConfig::default()
        },
    })
}

fn graded(pair: &JsValue) -> Result<(DType, Grade)> {
    let word = |i: u32| {
        let pair = pair.dyn_ref::<Array>();
        pair.and_then(|p| p.get(i).as_string()).unwrap_or_default()
    };
    let grades = [
        ("storage", Grade::Storage),
        ("arithmetic", Grade::Arithmetic),
        ("fast", Grade::Fast),
    ];
    let grade = grades.into_iter().find(|(name, _)| *name == word(1));
    let (dtype, grade) = DType::from_name(&word(0)).zip(grade).ok_or_else(|| {
        malformed(
            "`types` of a backend",
            "types with `storage`, `arithmetic` or `fast`",
        )
        .with_got(format!("{}: {}", word(0), word(1)))
    })?;
    Ok((dtype, grade.1))
}

/// Figures that are not given are those of a library that gives none (`crates/plugin/src/description.rs`).
fn speed(given: &JsValue) -> Speed {
    let figure = |name, default| {
        let figure = field(given, name).map(|f| f.as_f64().unwrap_or(f64::NAN));
        figure.unwrap_or(default)
    };
    Speed {
        flops_per_second: figure("flopsPerSecond", 1e10),
        bytes_per_second: figure("bytesPerSecond", 1e10),
        kernel_start: figure("kernelStart", 1e-6),
        transfer_start: figure("transferStart", 1e-6),
        transfer_bytes_per_second: figure("transferBytesPerSecond", 1e10),
    }
}
