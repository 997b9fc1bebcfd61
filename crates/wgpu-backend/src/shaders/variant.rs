//! A shader file with its definitions chosen.

use std::hash::{Hash, Hasher};

use super::call::Program;
use super::preprocess::{self, Result};

/// A file of `shaders/`, as the build script leaves it.
pub(crate) struct File {
    /// Another for each file.
    pub id: u16,
    /// Under `shaders/`.
    pub path: &'static str,
    /// A paragraph for each case, a line for each definition: its name and its values.
    pub values: &'static str,
    pub text: &'static str,
    /// What it includes, and what that includes.
    pub includes: &'static [&'static File],
}

impl PartialEq for File {
    fn eq(&self, other: &File) -> bool {
        self.id == other.id
    }
}

impl Eq for File {}

impl Hash for File {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.id.hash(state);
    }
}

/// One of the variants of a shader file. They are counted case by case, and within a case like the digits
/// of a number whose last digit is the value of the last definition.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Variant {
    pub file: &'static File,
    pub number: u16,
}

/// A definition and its value.
pub(crate) type Choice = (&'static str, &'static str);

impl Variant {
    /// The definitions of the variant.
    pub fn choices(self) -> Result<Vec<Choice>> {
        let mut number = usize::from(self.number);
        for case in self.file.values.split("\n\n") {
            let mut defines = Vec::new();
            for line in case.lines() {
                let (name, values) = line.split_once(' ').ok_or("a definition has no values")?;
                defines.push((name, values.split(' ').collect::<Vec<_>>()));
            }
            let count = defines.iter().map(|(_, values)| values.len()).product();
            if number >= count {
                number -= count;
                continue;
            }
            let digit = |(name, values): (&'static str, Vec<&'static str>)| {
                let value = values[number % values.len()];
                number /= values.len();
                (name, value)
            };
            let mut chosen: Vec<Choice> = defines.into_iter().rev().map(digit).collect();
            chosen.reverse();
            return Ok(chosen);
        }
        Err(format!("there is no variant {}", self.number))
    }

    /// The WGSL. Binding 0 is the uniform `Params`; `read_only` tells it of each storage buffer.
    pub fn source(self, read_only: &[bool]) -> Result<String> {
        let choices = self.choices()?;
        let text = preprocess::expand(
            self.file.text,
            &|path| {
                self.file
                    .includes
                    .iter()
                    .find(|f| f.path == path)
                    .map(|f| f.text)
            },
            &|name| choices.iter().find(|(n, _)| *n == name).map(|(_, v)| *v),
            &|i| read_only.get(i).copied().unwrap_or_default(),
        )?;
        // By the text: of another definition, `f16` may be a format that is read bit by bit.
        let mut words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
        Ok(match words.any(|word| word == "f16") {
            true => format!("enable f16;\n{text}"),
            false => text,
        })
    }

    /// File and definitions, for errors and profiles.
    fn label(self) -> String {
        let mut label = self.file.path.trim_end_matches(".wgsl").to_string();
        for (name, value) in self.choices().unwrap_or_default() {
            match value {
                "0" => {}
                "1" => label.extend([" ", name]),
                _ => label.extend([" ", value]),
            }
        }
        label
    }
}

impl Program {
    /// The WGSL; `read_only` tells it of each storage buffer.
    pub fn source(&self, read_only: &[bool]) -> Result<String> {
        match self {
            Program::File(variant) => variant.source(read_only),
            Program::User(shader) => Ok(shader.source(read_only)),
        }
    }

    /// What it is called in errors and profiles.
    pub fn label(&self) -> String {
        match self {
            Program::File(variant) => variant.label(),
            Program::User(_) => "custom".to_string(),
        }
    }
}
