//! Which of the machine's GPUs is opened.

use std::borrow::Cow;

use kilim_core::backend::{DeviceOption, DeviceOptions, OptionKind};
use kilim_core::{Error, ErrorCode, Result};

use crate::device::ID;

const HIGH: &str = "high";
const LOW: &str = "low";
const POWERS: &[Cow<'static, str>] = &[Cow::Borrowed(HIGH), Cow::Borrowed(LOW)];

/// The options of the backend. A page cannot list its GPUs.
pub(crate) const OPTIONS: &[DeviceOption] = &[
    DeviceOption {
        name: Cow::Borrowed("power"),
        kind: OptionKind::Choice(Cow::Borrowed(POWERS)),
        default: Cow::Borrowed(HIGH),
        meaning: Cow::Borrowed(
            "whether the fastest GPU is opened or the one that takes the least power",
        ),
    },
    #[cfg(not(target_arch = "wasm32"))]
    DeviceOption {
        name: Cow::Borrowed("device"),
        kind: OptionKind::Text,
        default: Cow::Borrowed(""),
        meaning: Cow::Borrowed(
            "a GPU by its number or a part of its name, as `kilim devices` lists them, whatever `power` says",
        ),
    },
];

/// What the options say of the GPU to open.
#[derive(Clone, Debug, Default)]
pub(crate) struct Selection(DeviceOptions);

impl Selection {
    /// # Errors
    /// `InvalidValue` for options that the backend does not have.
    pub fn of(options: &DeviceOptions) -> Result<Selection> {
        options.check(&ID, OPTIONS).map(Selection)
    }

    /// The adapter that is meant.
    ///
    /// # Errors
    /// `Device` where there is none.
    pub async fn adapter(&self, instance: &wgpu::Instance) -> Result<wgpu::Adapter> {
        #[cfg(not(target_arch = "wasm32"))]
        if let Some(wanted) = self.0.text("device").filter(|wanted| !wanted.is_empty()) {
            return named(wanted, all(instance).await);
        }
        let power_preference = match self.0.text("power") {
            Some(LOW) => wgpu::PowerPreference::LowPower,
            _ => wgpu::PowerPreference::HighPerformance,
        };
        let options = wgpu::RequestAdapterOptions {
            power_preference,
            ..Default::default()
        };
        let adapter = instance.request_adapter(&options).await;
        adapter.map_err(|e| Error::new(ErrorCode::Device, format!("there is no GPU: {e}")))
    }
}

/// The adapters of this machine, in the order of their numbers.
#[cfg(not(target_arch = "wasm32"))]
pub(crate) async fn all(instance: &wgpu::Instance) -> Vec<wgpu::Adapter> {
    instance.enumerate_adapters(wgpu::Backends::all()).await
}

/// The adapter with the number, or else the first with a name, that `wanted` says.
#[cfg(not(target_arch = "wasm32"))]
fn named(wanted: &str, adapters: Vec<wgpu::Adapter>) -> Result<wgpu::Adapter> {
    let names: Vec<String> = adapters.iter().map(|a| describe(&a.get_info())).collect();
    let found = position(wanted, &names).and_then(|at| adapters.into_iter().nth(at));
    found.ok_or_else(|| {
        let listed = names
            .iter()
            .enumerate()
            .map(|(i, name)| format!("{i}: {name}"));
        let listed: Vec<String> = listed.collect();
        Error::new(ErrorCode::Device, "there is no GPU of this number or name")
            .with_expected(match listed.is_empty() {
                true => "none is here".to_string(),
                false => listed.join(", "),
            })
            .with_got(wanted)
    })
}

/// Where a device is in a list of names: by its number, or by a part of its name whose case does not matter.
#[cfg(not(target_arch = "wasm32"))]
fn position(wanted: &str, names: &[String]) -> Option<usize> {
    if let Ok(number) = wanted.parse::<usize>() {
        return (number < names.len()).then_some(number);
    }
    let wanted = wanted.to_lowercase();
    names
        .iter()
        .position(|n| n.to_lowercase().contains(&wanted))
}

/// A GPU in words: its name, the interface to it, and the driver.
pub(crate) fn describe(info: &wgpu::AdapterInfo) -> String {
    let name = if info.name.is_empty() {
        "GPU"
    } else {
        &info.name
    };
    let driver = [info.driver.as_str(), info.driver_info.as_str()]
        .into_iter()
        .filter(|s| !s.is_empty())
        .collect::<Vec<_>>()
        .join(" ");
    let api = info.backend.to_str();
    if driver.is_empty() {
        format!("{name} ({api})")
    } else {
        format!("{name} ({api}, {driver})")
    }
}

#[cfg(all(test, not(target_arch = "wasm32")))]
mod tests {
    use super::*;

    #[test]
    fn a_gpu_is_named_by_number_or_by_a_part_of_its_name() {
        let names = ["Iris Xe (vulkan)", "GeForce 3060 (vulkan)", "llvmpipe (gl)"];
        let names = names.map(str::to_string);
        for (wanted, at) in [
            ("0", Some(0)),
            ("2", Some(2)),
            ("3", None),
            ("geforce", Some(1)),
            ("VULKAN", Some(0)),
            ("radeon", None),
            ("-1", None),
        ] {
            assert_eq!(position(wanted, &names), at, "{wanted}");
        }
    }

    #[test]
    fn a_gpu_that_is_not_there_is_an_error_with_those_that_are() {
        let mut options = DeviceOptions::default();
        options.set("device", "no such GPU");
        let selection = Selection::of(&options).unwrap();
        let instance = crate::device::gpu::instance();
        let error = pollster::block_on(selection.adapter(&instance))
            .err()
            .unwrap();
        assert_eq!(error.code(), ErrorCode::Device);
        assert_eq!(error.got(), Some("no such GPU"));
        let there = pollster::block_on(all(&instance));
        let expected = error.expected().unwrap();
        match there.is_empty() {
            true => assert_eq!(expected, "none is here"),
            false => assert!(expected.starts_with("0: "), "{expected}"),
        }
    }

    #[test]
    fn other_options_are_refused() {
        for (name, value) in [("power", "medium"), ("colour", "green")] {
            let mut options = DeviceOptions::default();
            options.set(name, value);
            let error = Selection::of(&options).unwrap_err();
            assert_eq!(error.code(), ErrorCode::InvalidValue);
            assert!(error.expected().is_some_and(|e| e.contains(match name {
                "power" => "high|low",
                _ => "device",
            })));
        }
    }
}
