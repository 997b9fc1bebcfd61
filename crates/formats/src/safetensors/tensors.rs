//! The tensors of a model's files, by the names that llama.cpp gives them.

use std::collections::HashMap;
use std::ops::Range;

use kilim_core::error::Result;
use kilim_core::{DType, Limits, Metadata, Tensor};

use super::config::Config;
use super::models::Model;
use super::{file, invalid, names};
use crate::ModelFile;
use crate::build::{OpTable, Refusals};
use crate::language::blocks::{ElementType, element_type};
use crate::language::{Described, Tensors};

/// The types of elements that are read, with ggml's numbers of them.
static TYPES: OpTable<&str, u32> = OpTable(&[("BF16", 30), ("F16", 1), ("F32", F32)]);

/// ggml's number of `float32`.
const F32: u32 = 0;

/// The tensors of a model.
pub struct Stored<'a> {
    source: &'a ModelFile<'a>,
    limits: &'a Limits,
    model: &'static Model,
    /// The head is the embedding, whatever the files have beside it.
    tied: bool,
    held: HashMap<String, Held>,
    refused: Refusals,
    /// What the first file that says anything of itself says.
    pub metadata: Metadata,
}

/// A tensor.
struct Held {
    /// The file beside the model; `None` of the model's own.
    file: Option<String>,
    shape: Vec<usize>,
    /// The type of the elements in the file.
    stored: &'static ElementType,
    /// The type of the elements as the network gets them.
    of: &'static ElementType,
    data: Range<u64>,
}

impl<'a> Stored<'a> {
    /// No tensors of the model that `config` is of.
    ///
    /// # Errors
    /// `InvalidModel` where a setting is of another type.
    pub fn new(
        source: &'a ModelFile<'a>,
        limits: &'a Limits,
        config: &Config,
        model: &'static Model,
    ) -> Result<Stored<'a>> {
        Ok(Stored {
            source,
            limits,
            model,
            tied: config.flag("tie_word_embeddings")?,
            held: HashMap::new(),
            refused: Refusals::default(),
            metadata: Metadata::default(),
        })
    }

    /// Adds the tensors of a file beside the model, or of the model's own.
    ///
    /// # Errors
    /// `InvalidModel` where the file is garbled or has a tensor that another has, `Io` where it is not there.
    pub fn add(&mut self, path: Option<String>) -> Result<()> {
        let (source, limits) = (self.source, self.limits);
        let size = match &path {
            Some(path) => source.external_size(path, limits)?,
            None => source.size(),
        };
        let part = |offset, to: &mut [u8]| {
            let bytes = bytes_of(source, limits, path.as_deref(), offset, to.len())?;
            bytes.copy_to(0, to)
        };
        let header = file::read(size, &part);
        let header = header.map_err(|e| match &path {
            Some(path) => e.with_input(path),
            None => e,
        })?;
        if self.metadata.entries.is_empty() {
            let texts = header.metadata.into_iter();
            for (key, text) in texts.filter(|(key, _)| !key.is_empty()) {
                self.metadata.add(key, text)?;
            }
        }
        for entry in header.entries {
            // Older files keep what the angles are computed from.
            let computed = entry.name.ends_with(".rotary_emb.inv_freq");
            if computed || self.tied && entry.name == "lm_head.weight" {
                continue;
            }
            let Some(&number) = TYPES.find(entry.dtype.as_str()) else {
                let what = format!("elements of type {}", entry.dtype);
                self.refused.add(what, &entry.name);
                continue;
            };
            let stored = element_type(number)?;
            let bytes = stored.bytes_of(&entry.shape);
            let bytes = bytes.map_err(|e| e.with_input(&entry.name))? as u64;
            let len = entry.data.end - entry.data.start;
            if bytes != len {
                let e = invalid("the data of a tensor has another length than its shape");
                return Err(e.with_input(&entry.name).with_got(len));
            }
            let larger = self.model.more_by_one && entry.name.ends_with("norm.weight");
            let known = names::of(&entry.name, self.model.norms_behind);
            let held = Held {
                file: path.clone(),
                shape: entry.shape,
                stored,
                of: if larger { element_type(F32)? } else { stored },
                data: entry.data,
            };
            let before = self.held.insert(known.unwrap_or(entry.name.clone()), held);
            if before.is_some() {
                return Err(invalid("a tensor is there twice").with_input(entry.name));
            }
        }
        Ok(())
    }

    /// Refuses tensors whose elements Kilim does not read, all of them in one error.
    ///
    /// # Errors
    /// `Unsupported` where there are any.
    pub fn check_elements(&mut self) -> Result<()> {
        std::mem::take(&mut self.refused).check()
    }

    /// How many tensors there are.
    pub fn count(&self) -> usize {
        self.held.len()
    }
}

impl Tensors for Stored<'_> {
    fn find(&self, name: &str) -> Option<Described<'_>> {
        let held = self.held.get(name)?;
        Some(Described {
            shape: &held.shape,
            of: held.of,
        })
    }

    fn names(&self) -> Vec<&str> {
        self.held.keys().map(String::as_str).collect()
    }

    fn raw(&self, name: &str) -> Result<Tensor> {
        let held = self.held.get(name);
        let held = held.ok_or_else(|| invalid("the tensor is missing"))?;
        // Held against the shape, which memory can hold.
        let (start, len) = (held.data.start, (held.data.end - held.data.start) as usize);
        let file = held.file.as_deref();
        let raw = bytes_of(self.source, self.limits, file, start, len)?;
        let larger = self.model.more_by_one && name.ends_with("norm.weight");
        match larger {
            true => more_by_one(&held.stored.plain(&raw, &held.shape)?),
            false => Ok(raw),
        }
    }
}

/// Bytes of a file beside the model, or of the model's own.
fn bytes_of(
    source: &ModelFile,
    limits: &Limits,
    file: Option<&str>,
    offset: u64,
    len: usize,
) -> Result<Tensor> {
    match file {
        Some(path) => source.external(path, offset, len, limits),
        None => source.part(offset, len),
    }
}

/// The bytes of numbers that are larger by one, as `float32`.
fn more_by_one(tensor: &Tensor) -> Result<Tensor> {
    let numbers = tensor.to_f64s()?;
    let larger: Vec<f32> = numbers.into_iter().map(|n| n as f32 + 1.0).collect();
    let larger = Tensor::from_slice(&[larger.len()], &larger)?;
    larger.bytes_as(DType::U8, &[larger.byte_len()])
}
