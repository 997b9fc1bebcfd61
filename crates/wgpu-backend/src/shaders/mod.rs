//! The shader files and their variants. A file is compiled once for every combination of
//! definitions that is used; shapes are never among them.

use std::sync::{Arc, LazyLock};

use crate::kernels::custom::UserShader;
use crate::preprocess;

mod table;

pub(crate) use table::ALL;

/// Threads of a workgroup in kernels that treat elements one by one.
pub(crate) const LINEAR: usize = 64;

/// Workgroups along one dimension of a dispatch, at most.
pub(crate) const MOST_GROUPS: usize = 65535;

/// Values that a definition may take.
pub(crate) type Values = (&'static str, &'static [&'static str]);

/// One shader file and what is known of it.
pub(crate) struct Shader {
    pub name: &'static str,
    /// The file, under `shaders/`.
    pub path: &'static str,
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "what the tests hold shaders to")
    )]
    pub workgroup: [u32; 3],
    /// The sets of definitions that make valid variants: any of the values of each definition of one set.
    pub variants: &'static [&'static [Values]],
}

impl Shader {
    /// Whether these definitions are among the declared variants.
    pub fn allows(&self, defines: &[(&str, &str)]) -> bool {
        self.variants.iter().any(|set| {
            set.len() == defines.len()
                && set.iter().all(|(name, values)| {
                    defines.iter().any(|(n, v)| n == name && values.contains(v))
                })
        })
    }
}

/// A shader with its definitions chosen.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Variant {
    pub shader: &'static str,
    /// WGSL that is not one of the files: a custom operator's.
    pub text: Option<Arc<UserShader>>,
    pub defines: Vec<(&'static str, &'static str)>,
    /// For each storage binding, whether it is read only.
    pub read_only: Vec<bool>,
}

impl Variant {
    /// What stands for `name` in the shader; of `ACCESS_n` how binding `n` is accessed.
    pub fn definition(&self, name: &str) -> Option<String> {
        if let Some((_, value)) = self.defines.iter().find(|(n, _)| *n == name) {
            return Some((*value).to_string());
        }
        let binding: usize = name.strip_prefix("ACCESS_")?.parse().ok()?;
        let read_only = *self.read_only.get(binding.checked_sub(1)?)?;
        Some(if read_only { "read" } else { "read_write" }.to_string())
    }

    /// The WGSL. Binding 0 is the uniform `Params`, storage buffers follow.
    pub fn source(&self) -> preprocess::Result<String> {
        if let Some(text) = &self.text {
            return Ok(text.source(&self.read_only));
        }
        let shader = find(self.shader).ok_or_else(|| format!("no shader `{}`", self.shader))?;
        let text = file(shader.path).ok_or_else(|| format!("no shader file `{}`", shader.path))?;
        let text = preprocess::expand(text, &file, &|n| self.definition(n))?;
        // By the text: of another definition, `f16` may be a format that is read bit by bit.
        let mut words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
        Ok(if words.any(|word| word == "f16") {
            format!("enable f16;\n{text}")
        } else {
            text
        })
    }

    /// Name and definitions, for errors and profiles.
    pub fn label(&self) -> String {
        let mut label = self.shader.to_string();
        for (_, value) in &self.defines {
            label.push(' ');
            label.push_str(value);
        }
        label
    }
}

/// The text of a shader file, as `build.rs` left it.
fn file(path: &str) -> Option<&'static str> {
    static PACKED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/shaders.lz4"));
    static FILES: LazyLock<Vec<u8>> =
        LazyLock::new(|| lz4_flex::decompress_size_prepended(PACKED).unwrap_or_default());
    let mut parts = FILES.split(|byte| *byte == 0);
    parts.find(|part| *part == path.as_bytes())?;
    str::from_utf8(parts.next()?).ok()
}

pub(crate) fn find(name: &str) -> Option<&'static Shader> {
    ALL.iter().find(|s| s.name == name)
}
