//! Options that a backend has for its device, beside those of [`super::BackendConfig`], which all backends have.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use super::BackendId;
use super::config::KEYS;
use crate::error::{Error, ErrorCode, Result};

/// What the value of an option may be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OptionKind {
    /// `on` or `off`.
    Switch,
    /// A whole number that fits 64 bits with a sign.
    Integer,
    /// A finite number, with a decimal point or without.
    Number,
    /// Any text.
    Text,
    /// One of these words.
    Choice(Cow<'static, [Cow<'static, str>]>),
}

impl OptionKind {
    fn takes(&self, value: &str) -> bool {
        match self {
            OptionKind::Switch => matches!(value, "on" | "off"),
            OptionKind::Integer => value.parse::<i64>().is_ok(),
            OptionKind::Number => value.parse::<f64>().is_ok_and(f64::is_finite),
            OptionKind::Text => true,
            OptionKind::Choice(words) => words.iter().any(|word| word == value),
        }
    }
}

/// The kind as a value stands on a command line: `on|off`, `INTEGER`, `high|low`.
impl fmt::Display for OptionKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OptionKind::Switch => f.write_str("on|off"),
            OptionKind::Integer => f.write_str("INTEGER"),
            OptionKind::Number => f.write_str("NUMBER"),
            OptionKind::Text => f.write_str("TEXT"),
            OptionKind::Choice(words) => f.write_str(&words.join("|")),
        }
    }
}

/// An option that a backend has for its device, as the backend itself describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceOption {
    /// The word before the equals sign: `power` in `wgpu:power=low`.
    pub name: Cow<'static, str>,
    pub kind: OptionKind,
    /// The value where the user gives none.
    pub default: Cow<'static, str>,
    /// What the option does, in one sentence without a full stop.
    pub meaning: Cow<'static, str>,
}

impl DeviceOption {
    /// Whether it has a name, and a default of its kind.
    pub fn is_possible(&self) -> bool {
        !self.name.is_empty() && self.kind.takes(&self.default)
    }
}

/// Values of options by name: what a user wants of a device, and, once [`DeviceOptions::check`] has seen them, what a
/// backend is told.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct DeviceOptions(BTreeMap<String, String>);

impl DeviceOptions {
    /// Gives an option a value; an earlier one is replaced.
    pub fn set(&mut self, name: impl Into<String>, value: impl Into<String>) {
        self.0.insert(name.into(), value.into());
    }

    /// These options, with another one set.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> DeviceOptions {
        self.set(name, value);
        self
    }

    /// The value of an option as a text; `None` where there is none.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// The value of an [`OptionKind::Switch`].
    pub fn switch(&self, name: &str) -> Option<bool> {
        self.text(name).map(|value| value == "on")
    }

    /// The value of an [`OptionKind::Integer`].
    pub fn integer(&self, name: &str) -> Option<i64> {
        self.text(name)?.parse().ok()
    }

    /// The value of an [`OptionKind::Number`].
    pub fn number(&self, name: &str) -> Option<f64> {
        self.text(name)?.parse().ok()
    }

    /// Names and values, in the order of the names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(n, v)| (n.as_str(), v.as_str()))
    }

    /// What the backend `id` with the options `known` is told: the values that were given, and the defaults of the
    /// others.
    ///
    /// # Errors
    /// `InvalidValue` where the backend has no option of a name, with the names that it has, or where a value is not of
    /// the option's kind.
    pub fn check(&self, id: &BackendId, known: &[DeviceOption]) -> Result<DeviceOptions> {
        let mut all: BTreeMap<String, String> = known
            .iter()
            .map(|o| (o.name.to_string(), o.default.to_string()))
            .collect();
        for (name, value) in &self.0 {
            let Some(option) = known.iter().find(|o| o.name == *name) else {
                let message = format!("the backend `{id}` has no option `{name}`");
                let names = KEYS.into_iter().chain(known.iter().map(|o| &*o.name));
                let names: Vec<&str> = names.collect();
                return Err(Error::new(ErrorCode::InvalidValue, message).with_known(name, &names));
            };
            if !option.kind.takes(value) {
                let message =
                    format!("the option `{name}` of the backend `{id}` has no such value");
                return Err(Error::new(ErrorCode::InvalidValue, message)
                    .with_expected(&option.kind)
                    .with_got(value)
                    .with_hint(&option.meaning));
            }
            all.insert(name.clone(), value.clone());
        }
        Ok(DeviceOptions(all))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn option(name: &'static str, kind: OptionKind, default: &'static str) -> DeviceOption {
        DeviceOption {
            name: name.into(),
            kind,
            default: default.into(),
            meaning: "whatever".into(),
        }
    }

    fn known() -> Vec<DeviceOption> {
        let words = vec!["high".into(), "low".into()];
        vec![
            option("cores", OptionKind::Integer, "4"),
            option("clock", OptionKind::Number, "1.5"),
            option("eager", OptionKind::Switch, "off"),
            option("power", OptionKind::Choice(words.into()), "high"),
            option("firmware", OptionKind::Text, ""),
        ]
    }

    fn checked(given: &[(&str, &str)]) -> Result<DeviceOptions> {
        let mut options = DeviceOptions::default();
        for (name, value) in given {
            options.set(*name, *value);
        }
        options.check(&BackendId::new("xpu"), &known())
    }

    #[test]
    fn what_is_not_given_has_its_default() {
        let told = checked(&[("cores", "-2"), ("eager", "on"), ("firmware", "a=b:c")]).unwrap();
        assert_eq!(told.integer("cores"), Some(-2));
        assert_eq!(told.number("clock"), Some(1.5));
        assert_eq!(told.switch("eager"), Some(true));
        assert_eq!(told.text("power"), Some("high"));
        assert_eq!(told.text("firmware"), Some("a=b:c"));
        assert_eq!(told.text("layout"), None);
    }

    #[test]
    fn unknown_options_are_refused_with_the_known_ones() {
        let error = checked(&[("pover", "low")]).unwrap_err();
        assert_eq!(error.code(), ErrorCode::InvalidValue);
        let expected = error.expected().unwrap();
        for name in ["layout", "timers", "cores", "power", "firmware"] {
            assert!(expected.contains(name), "{expected}");
        }
        assert!(
            error.to_string().contains("did you mean `power`?"),
            "{error}"
        );
    }

    #[test]
    fn values_of_another_kind_are_refused() {
        for (name, value, form) in [
            ("cores", "four", "INTEGER"),
            ("cores", "1.5", "INTEGER"),
            ("clock", "inf", "NUMBER"),
            ("clock", "fast", "NUMBER"),
            ("eager", "true", "on|off"),
            ("power", "medium", "high|low"),
        ] {
            let error = checked(&[(name, value)]).unwrap_err();
            assert_eq!(error.code(), ErrorCode::InvalidValue);
            assert_eq!(error.expected(), Some(form));
            assert_eq!(error.got(), Some(value));
        }
    }
}
