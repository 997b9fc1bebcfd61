//! What a page's backend says of itself, and what it is told of a session.

use std::borrow::Cow;

use js_sys::{Array, Object};
use kilim_core::backend::{
    BackendConfig, BackendId, ContextConfig, DataLayout, Description, DeviceOption, Grade, Half,
    Memory, OptionKind, Quantized, Speed,
};
use kilim_core::error::value_error;
use kilim_core::memory::MemoryMode;
use kilim_core::{DType, Result};
use wasm_bindgen::{JsCast, JsValue};

use crate::convert::{field, malformed, object, strings};

/// The description of `{id, device, types: [[type, grade]], layouts, dynamicShapes, half?, quantized, timers, maxTensorBytes?, speed}`.
///
/// # Errors
/// `InvalidValue` where a field is of another form, or a speed cannot be.
pub fn describe(given: &JsValue) -> Result<Description> {
    let text = |name: &str| {
        let text = field(given, name).and_then(|v| v.as_string());
        text.ok_or_else(|| malformed(&format!("`{name}` of a backend"), "a string"))
    };
    let types = list(given, "types")?;
    let dtypes: Vec<(DType, Grade)> = types.iter().map(|t| graded(&t)).collect::<Result<_>>()?;
    let speed = speed(&field(given, "speed").unwrap_or_default());
    if !speed.is_possible() {
        return Err(
            value_error("the backend describes itself with a speed that cannot be")
                .with_expected("rates above 0, times of at least 0"),
        );
    }
    let most = field(given, "maxTensorBytes").and_then(|m| m.as_f64());
    let config = config(given, dtypes.contains(&(DType::F16, Grade::Fast)))?;
    Ok(Description {
        id: BackendId::from(text("id")?.as_str()),
        device: text("device")?,
        memory: Memory::Device,
        dtypes,
        alignment: 64,
        max_tensor_bytes: most.map_or(u64::MAX, |most| most as u64),
        max_arena_bytes: u64::MAX,
        speed,
        software: false,
        config,
    })
}

/// The list in a field.
///
/// # Errors
/// `InvalidValue` where there is none.
pub fn list(given: &JsValue, name: &str) -> Result<Array> {
    let list = field(given, name).and_then(|list| list.dyn_into::<Array>().ok());
    list.ok_or_else(|| malformed(&format!("`{name}` of a backend"), "an array"))
}

/// What it offers. `fast_half` says whether it is at its best with `float16`, which decides where it does not.
fn config(given: &JsValue, fast_half: bool) -> Result<BackendConfig> {
    let layout = |name: JsValue| {
        let layout = name.as_string().and_then(|name| DataLayout::parse(&name));
        layout.ok_or_else(|| malformed("`layout` of a backend", "`NCHW` or `NHWC`"))
    };
    let layouts: Vec<_> = list(given, "layouts")?
        .iter()
        .map(layout)
        .collect::<Result<_>>()?;
    if layouts.is_empty() {
        return Err(malformed("`layout` of a backend", "at least one layout"));
    }
    let is = |name: &str| field(given, name).is_some_and(|v| v.is_truthy());
    let by_grade = if fast_half { HALF_KEPT } else { HALF_OFF };
    Ok(BackendConfig {
        layouts,
        dynamic_tensors: is("dynamicShapes"),
        f16: word(given, "half", by_grade, &HALVES)?,
        quantized: word(given, "quantized", ARITHMETICS[0].0, &ARITHMETICS)?,
        timers: is("timers"),
    })
}

const HALF_OFF: &str = "off";
const HALF_KEPT: &str = "kept";

/// What a backend computes in half precision, in the words of `www/package/src/backend/types.ts`.
const HALVES: [(&str, Half); 3] = [
    (HALF_OFF, Half::Off),
    ("chosen", Half::Chosen),
    (HALF_KEPT, Half::Kept),
];

/// The arithmetic of quantised tensors, in the words of `www/package/src/backend/types.ts`.
const ARITHMETICS: [(&str, Quantized); 2] =
    [("exact", Quantized::Exact), ("native", Quantized::Native)];

/// What the word in a field stands for; `usual` where there is none.
///
/// # Errors
/// `InvalidValue` where it is another word.
fn word<T: Copy>(given: &JsValue, name: &str, usual: &str, words: &[(&str, T)]) -> Result<T> {
    let said = field(given, name);
    let said = said.map_or(Some(usual.to_string()), |said| said.as_string());
    let known = words.iter().find(|(word, _)| said.as_deref() == Some(word));
    known.map(|(_, meaning)| *meaning).ok_or_else(|| {
        let words: Vec<_> = words.iter().map(|(word, _)| *word).collect();
        let error = malformed(&format!("`{name}` of a backend"), &words.join(", "));
        error.with_got(said.unwrap_or_else(|| "no text".to_string()))
    })
}

/// The word for a value that a backend is told of.
fn word_of<T: PartialEq>(words: &[(&'static str, T)], meaning: &T) -> JsValue {
    let known = words.iter().find(|(_, of)| of == meaning);
    known.map_or(JsValue::UNDEFINED, |(word, _)| (*word).into())
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

/// What a session wants of a backend with these options: `{layout, dynamicShapes, half, quantized, timers, memory, options}`. Options are
/// booleans, numbers and texts.
pub fn settings(config: &ContextConfig, known: &[DeviceOption]) -> JsValue {
    let values = known.iter().map(|option| {
        let (name, own) = (&*option.name, &config.device);
        let value = match option.kind {
            OptionKind::Switch => own.switch(name).map(JsValue::from),
            OptionKind::Integer | OptionKind::Number => own.number(name).map(JsValue::from_f64),
            OptionKind::Text | OptionKind::Choice(_) => own.text(name).map(JsValue::from_str),
        };
        Array::of2(&name.into(), &value.unwrap_or_default())
    });
    let values: Array = values.collect();
    let wanted = &config.backend;
    let layout = wanted.layouts.first().map(|l| l.to_string().into());
    let spare = config.memory == MemoryMode::Limit;
    object([
        ("layout", layout),
        ("dynamicShapes", Some(wanted.dynamic_tensors.into())),
        ("half", Some(word_of(&HALVES, &wanted.f16))),
        ("quantized", Some(word_of(&ARITHMETICS, &wanted.quantized))),
        ("timers", Some(wanted.timers.into())),
        (
            "memory",
            Some(if spare { "limit" } else { "normal" }.into()),
        ),
        (
            "options",
            Object::from_entries(&values).ok().map(Into::into),
        ),
    ])
}

/// The options of its own, of `[{name, kind, initial, meaning}]`, where a kind is a word or a list of the words that are taken.
///
/// # Errors
/// `InvalidValue` where one has no name, a kind that is none, or an initial value that it does not take.
pub fn options(given: &JsValue) -> Result<Vec<DeviceOption>> {
    let option = |told: JsValue| {
        let option = option(&told).filter(DeviceOption::is_possible);
        option.ok_or_else(|| {
            malformed(
                "an option of a backend",
                "a name, a kind and an initial value of it",
            )
        })
    };
    list(given, "options")?.iter().map(option).collect()
}

fn option(told: &JsValue) -> Option<DeviceOption> {
    let text = |name: &str| field(told, name).and_then(|v| v.as_string());
    let kind = field(told, "kind")?;
    let kind = match kind.as_string().as_deref() {
        Some("switch") => OptionKind::Switch,
        Some("integer") => OptionKind::Integer,
        Some("number") => OptionKind::Number,
        Some("text") => OptionKind::Text,
        Some(_) => return None,
        None => {
            let words = strings(&kind, "the words of an option").ok()?;
            OptionKind::Choice(words.into_iter().map(Cow::Owned).collect())
        }
    };
    Some(DeviceOption {
        name: text("name")?.into(),
        kind,
        default: text("initial")?.into(),
        meaning: text("meaning").unwrap_or_default().into(),
    })
}
