//! What holds for everything a backend does: what it offers, and what the user wants of it.

use std::collections::HashMap;
use std::str::FromStr;

#[cfg(not(target_arch = "wasm32"))]
use super::CommandQueue;
use super::{BackendId, DataLayout, Description, DeviceOptions};
use crate::error::{Error, ErrorCode, Result};

/// What a backend computes in half precision; each includes the ones before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Half {
    /// Nothing.
    #[default]
    Off,
    /// Nodes that [`crate::session::MixedPrecision`] chooses.
    Chosen,
    /// Models of half precision, too, as long as all backends of the session do; else they are
    /// computed in single precision.
    Kept,
}

/// In which arithmetic a backend computes with quantised tensors; each includes the one before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Quantized {
    /// The one that Kilim defines: the same bytes on every backend.
    #[default]
    Exact,
    /// Where that is not to be had, one of the backend's own, at most a step of quantisation off in each
    /// operator.
    Native,
}

/// Options of a backend: what it offers, in a [`Description`], and what it is to do, for a context.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackendConfig {
    /// Layouts of spatial tensors that its kernels read, the one that it is fastest with first.
    pub layouts: Vec<DataLayout>,
    /// Whether a session can be planned again for inputs of other shapes.
    pub dynamic_tensors: bool,
    pub f16: Half,
    pub quantized: Quantized,
    /// Offered: nodes are timed by the device itself, or by a clock beside it. Wanted: every run is
    /// timed, see [`crate::Session::times`].
    pub timers: bool,
}

impl Default for BackendConfig {
    fn default() -> Self {
        BackendConfig {
            layouts: vec![DataLayout::ChannelsFirst],
            dynamic_tensors: true,
            f16: Half::Off,
            quantized: Quantized::Exact,
            timers: false,
        }
    }
}

/// The options that all backends have, by the words of a [`Setting`].
pub(super) const KEYS: [&str; 5] = ["dynamic", "f16", "layout", "quantized", "timers"];

/// What a user wants of one backend; what is left out stays as the backend has it, without timers and
/// with exact quantised results.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BackendOptions {
    /// The layout of spatial operators, instead of the one that the backend is fastest with.
    pub layout: Option<DataLayout>,
    pub dynamic_tensors: Option<bool>,
    pub f16: Option<Half>,
    pub quantized: Quantized,
    pub timers: bool,
    /// Options that this backend alone has ([`super::Backend::options`]).
    pub device: DeviceOptions,
    /// The command queue that the backend is to use, instead of one of its own. A backend that takes none is an
    /// `Unsupported` error.
    #[cfg(not(target_arch = "wasm32"))]
    pub queue: Option<CommandQueue>,
}

impl BackendOptions {
    /// What a backend is to do.
    ///
    /// # Errors
    /// `Unsupported` where it does not offer that.
    pub fn resolve(&self, of: &Description) -> Result<BackendConfig> {
        let offered = &of.config;
        let refuse = |what: &str, offered: String| {
            let message = format!("the backend `{}` does not offer {what}", of.id);
            Err(Error::new(ErrorCode::Unsupported, message).with_expected(offered))
        };
        let mut config = BackendConfig {
            quantized: self.quantized,
            timers: self.timers,
            ..offered.clone()
        };
        if let Some(layout) = self.layout {
            let Some(at) = offered.layouts.iter().position(|l| *l == layout) else {
                let known: Vec<_> = offered.layouts.iter().map(ToString::to_string).collect();
                return refuse(&format!("the layout {layout}"), known.join(", "));
            };
            config.layouts[..=at].rotate_right(1);
        }
        if let Some(dynamic) = self.dynamic_tensors {
            if dynamic && !offered.dynamic_tensors {
                return refuse("dynamic tensors", "one set of input shapes".to_string());
            }
            config.dynamic_tensors = dynamic;
        }
        if let Some(half) = self.f16 {
            if half > offered.f16 {
                return refuse("this of float16", format!("{:?}", offered.f16));
            }
            config.f16 = half;
        }
        if self.quantized > offered.quantized {
            return refuse(
                "an arithmetic of its own for quantised tensors",
                format!("{:?}", offered.quantized),
            );
        }
        if self.timers && !offered.timers {
            return refuse("timers", "none".to_string());
        }
        Ok(config)
    }
}

/// What users want of several backends.
#[derive(Clone, Debug, Default)]
pub struct BackendConfigs(HashMap<BackendId, BackendOptions>);

impl BackendConfigs {
    /// What is wanted of a backend, to be changed.
    pub fn entry(&mut self, id: impl Into<BackendId>) -> &mut BackendOptions {
        self.0.entry(id.into()).or_default()
    }

    /// What is asked of a backend; nothing where it is not named.
    pub fn get(&self, id: &BackendId) -> BackendOptions {
        self.0.get(id).cloned().unwrap_or_default()
    }

    /// What is asked of one backend alone.
    pub fn only(&self, id: &BackendId) -> BackendConfigs {
        let own = self.0.get(id).map(|wishes| (id.clone(), wishes.clone()));
        BackendConfigs(own.into_iter().collect())
    }

    /// # Errors
    /// `NoBackend` where there are wishes for a backend that the session does not have.
    pub fn check(&self, ids: &[BackendId]) -> Result<()> {
        match self.0.keys().find(|id| !ids.contains(id)) {
            Some(id) => {
                let message = format!("`{id}` is configured, which the session does not have");
                let known: Vec<_> = ids.iter().map(BackendId::as_str).collect();
                Err(Error::new(ErrorCode::NoBackend, message).with_known(id.as_str(), &known))
            }
            None => Ok(()),
        }
    }

    /// Has every backend be called what `resolve` says.
    pub fn rename(&mut self, resolve: impl Fn(&BackendId) -> BackendId) {
        let old = std::mem::take(&mut self.0).into_iter();
        self.0 = old.map(|(id, wishes)| (resolve(&id), wishes)).collect();
    }

    /// Reads one wish, as [`Setting`] has it.
    pub fn set(&mut self, setting: &Setting) {
        let options = self.entry(setting.backend.clone());
        setting.wish.clone().apply(options);
    }
}

/// One wish of a user in words: `BACKEND:KEY=VALUE`, where the keys are `layout` (`NCHW`, `NHWC`),
/// `dynamic`, `timers` (`on`, `off`), `f16` (`off`, `chosen`, `kept`), `quantized` (`exact`, `native`), and those that
/// the backend itself has ([`super::Backend::options`]), which are checked when it is opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    backend: BackendId,
    wish: Wish,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Wish {
    Layout(DataLayout),
    Dynamic(bool),
    Half(Half),
    Quantized(Quantized),
    Timers(bool),
    Device(String, String),
}

impl Wish {
    fn parse(key: &str, value: &str) -> Option<Wish> {
        let on = || match value {
            "on" => Some(true),
            "off" => Some(false),
            _ => None,
        };
        Some(match key {
            "layout" => Wish::Layout(DataLayout::parse(value)?),
            "dynamic" => Wish::Dynamic(on()?),
            "timers" => Wish::Timers(on()?),
            "f16" => Wish::Half(match value {
                "off" => Half::Off,
                "chosen" => Half::Chosen,
                "kept" => Half::Kept,
                _ => return None,
            }),
            "quantized" => Wish::Quantized(match value {
                "exact" => Quantized::Exact,
                "native" => Quantized::Native,
                _ => return None,
            }),
            "" => return None,
            own => Wish::Device(own.to_string(), value.to_string()),
        })
    }

    fn apply(self, options: &mut BackendOptions) {
        match self {
            Wish::Layout(layout) => options.layout = Some(layout),
            Wish::Dynamic(dynamic) => options.dynamic_tensors = Some(dynamic),
            Wish::Half(half) => options.f16 = Some(half),
            Wish::Quantized(quantized) => options.quantized = quantized,
            Wish::Timers(timers) => options.timers = timers,
            Wish::Device(name, value) => options.device.set(name, value),
        }
    }
}

impl FromStr for Setting {
    type Err = Error;

    fn from_str(text: &str) -> Result<Setting> {
        let parts = text
            .split_once(':')
            .and_then(|(backend, rest)| Some((backend, rest.split_once('=')?)));
        let setting = parts.and_then(|(backend, (key, value))| {
            Some(Setting {
                backend: backend.into(),
                wish: Wish::parse(key, value)?,
            })
        });
        setting.ok_or_else(|| {
            Error::new(ErrorCode::InvalidValue, "this does not configure a backend")
                .with_expected(
                    "`ID:layout=NCHW`, `ID:dynamic=off`, `ID:f16=off|chosen|kept`, \
                     `ID:quantized=exact|native`, `ID:timers=on`, or `ID:OPTION=VALUE` with an option that \
                     `kilim devices` lists",
                )
                .with_got(text)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wishes_in_words() {
        let mut configs = BackendConfigs::default();
        for text in [
            "cpu:layout=NCHW",
            "cpu:timers=on",
            "wgpu:f16=off",
            "acl_neon:quantized=native",
            "xpu:firmware=a=b",
        ] {
            configs.set(&text.parse().unwrap());
        }
        let quantized = |id: &str| configs.get(&id.into()).quantized;
        assert_eq!(quantized("acl_neon"), Quantized::Native);
        assert_eq!(quantized("cpu"), Quantized::Exact);
        let cpu = configs.get(&"cpu".into());
        assert_eq!(cpu.layout, Some(DataLayout::ChannelsFirst));
        assert!(cpu.timers && !configs.get(&"wgpu".into()).timers);
        assert_eq!(configs.get(&"wgpu".into()).f16, Some(Half::Off));
        let own = configs.get(&"xpu".into()).device;
        assert_eq!(own.text("firmware"), Some("a=b"));
        for wrong in ["cpu", "cpu:layout", "cpu:layout=NCXHW", "cpu:=on"] {
            assert!(wrong.parse::<Setting>().is_err(), "{wrong}");
        }
    }
}
