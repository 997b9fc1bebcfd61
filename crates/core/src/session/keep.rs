//! Which outputs of a run stay where they were computed.

#[cfg(not(target_arch = "wasm32"))]
use crate::device_tensor::DeviceTensor;

/// Outputs by name. `*` stands for any letters: `present.*` is all whose names begin like that.
///
/// A pattern that fits no output is an `Input` error, an output that is no tensor for certain (a sequence, a map, an optional
/// value) a `DType` error, and one that the user has in a layout of its own `Unsupported`. Strings are kept on the host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Keep {
    patterns: Vec<String>,
    /// Outputs by their whole names, each with memory of the user's that it goes into.
    #[cfg(not(target_arch = "wasm32"))]
    memory: Vec<(String, DeviceTensor)>,
}

impl Keep {
    /// Outputs whose names fit one of these.
    pub fn new(patterns: impl IntoIterator<Item = impl Into<String>>) -> Keep {
        Keep {
            patterns: patterns.into_iter().map(Into::into).collect(),
            #[cfg(not(target_arch = "wasm32"))]
            memory: Vec::new(),
        }
    }

    /// Has the output of this name go into memory of the user's, which [`crate::Session::import`] made a tensor of. The run gives
    /// this tensor as the output. A backend that takes the tensor computes there, or copies on its device; what another one
    /// computes is brought to the host and written. What the memory holds after a run that failed is not told.
    ///
    /// Memory for a name that no output has is an `Input` error, for an output of another element type or shape a `DType` or
    /// `Shape` error. A tensor that was not imported, that is there for two outputs, or that the run reads, is an `InvalidValue`
    /// error.
    #[cfg(not(target_arch = "wasm32"))]
    #[must_use]
    pub fn with_memory(mut self, output: impl Into<String>, memory: DeviceTensor) -> Keep {
        self.memory.push((output.into(), memory));
        self
    }

    /// Outputs that go into memory of the user's.
    #[cfg(not(target_arch = "wasm32"))]
    pub(super) fn memory(&self) -> &[(String, DeviceTensor)] {
        &self.memory
    }

    /// Whether the output of this name is kept.
    pub fn has(&self, name: &str) -> bool {
        #[cfg(not(target_arch = "wasm32"))]
        if self.memory.iter().any(|(output, _)| output == name) {
            return true;
        }
        self.patterns.iter().any(|pattern| fits(pattern, name))
    }

    /// A pattern that fits none of the names, or an output that is none of them.
    pub(super) fn idle<'a>(&self, names: impl Iterator<Item = &'a str> + Clone) -> Option<&str> {
        #[cfg(not(target_arch = "wasm32"))]
        for (output, _) in &self.memory {
            if !names.clone().any(|name| name == output) {
                return Some(output);
            }
        }
        let idle = |pattern: &&String| !names.clone().any(|name| fits(pattern, name));
        self.patterns.iter().find(idle).map(String::as_str)
    }
}

/// Whether the parts between the stars stand in the name in their order, the first and the last at its ends.
fn fits(pattern: &str, name: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else {
        return pattern == name;
    };
    let Some(mut name) = name.strip_prefix(first) else {
        return false;
    };
    let (between, last) = rest.rsplit_once('*').unwrap_or(("", rest));
    for part in between.split('*') {
        match name.find(part) {
            Some(at) => name = &name[at + part.len()..],
            None => return false,
        }
    }
    name.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::{Keep, fits};

    #[test]
    fn stars_stand_for_any_letters() {
        for (pattern, name, expected) in [
            ("logits", "logits", true),
            ("logits", "logits2", false),
            ("present.*", "present.0.key", true),
            ("present.*", "past.present.0", false),
            ("*.key", "present.0.key", true),
            ("*.key", "present.0.keys", false),
            ("p*.0.*y", "present.0.key", true),
            ("p*0*0*y", "present.0.key", false),
            ("a*a", "a", false),
            ("a*a", "aa", true),
            ("*", "", true),
            ("**", "ä", true),
            ("*ä*", "größe ä", true),
            ("", "x", false),
        ] {
            assert_eq!(fits(pattern, name), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn a_pattern_without_an_output_is_found() {
        let keep = Keep::new(["present.*", "logit"]);
        assert_eq!(
            keep.idle(["present.1", "logits"].into_iter()),
            Some("logit")
        );
        assert_eq!(keep.idle(["present.1", "logit"].into_iter()), None);
        assert!(keep.has("present.1") && !keep.has("logits"));
    }
}
