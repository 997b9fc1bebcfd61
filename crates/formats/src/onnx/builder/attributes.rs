//! The attributes of a node. `None` says that one is missing.

use std::sync::Arc;

use kilim_core::dtype::DType;
use kilim_core::error::{Error, Result, unsupported};
use kilim_core::ops::{Fact, PictureReader};
use kilim_core::tensor::Tensor;

use super::NodeBuilder;
use crate::onnx::proto::{AttributeProto, GraphProto, TensorProto, invalid};
use crate::onnx::scope::fact;

/// Attributes that a mapping may leave unread: hints, the precision of a stage that is computed in `float32` at least, what says of
/// outputs only which are wanted, and what counts in training, in another mode or for another element type alone.
const MAY_GO_UNREAD: [&str; 19] = [
    "accuracy_level",
    "broadcast",
    "chunk_size",
    "consumed_inputs",
    "cubic_coeff_a",
    "default_float",
    "default_int64",
    "default_string",
    "is_test",
    "momentum",
    "multi_class",
    "nodes_hitrates",
    "nodes_hitrates_as_tensor",
    "output_sequence",
    "ratio",
    "replaced_value_float",
    "replaced_value_int64",
    "seed",
    "stash_type",
];

impl<'a> NodeBuilder<'_, 'a> {
    /// The attribute as the file has it; it counts as read.
    pub fn attribute(&self, name: &str) -> Option<&'a AttributeProto<'a>> {
        let at = self.attributes.iter().position(|(n, _)| *n == name)?;
        self.read[at].set(true);
        Some(self.attributes[at].1)
    }

    /// All attributes, as the file has them.
    pub fn stored_attributes(&self) -> Vec<(&'a str, &'a AttributeProto<'a>)> {
        self.read.iter().for_each(|read| read.set(true));
        self.attributes.clone()
    }

    /// A tensor that an attribute holds inside.
    pub fn read_tensor(&self, proto: &TensorProto) -> Result<Tensor> {
        self.importer.scope.tensors.read(proto)
    }

    /// What decodes pictures in this session.
    pub fn pictures(&self) -> Option<PictureReader> {
        self.importer.scope.tensors.source.pictures
    }

    /// `InvalidModel` where the attribute is there and no integer.
    pub fn int(&self, name: &str) -> Result<Option<i64>> {
        let attribute = self.attribute(name);
        attribute
            .map(|a| {
                a.i.ok_or_else(|| invalid(format!("the attribute `{name}` is no integer")))
            })
            .transpose()
    }

    /// An integer, or its default.
    pub fn int_or(&self, name: &str, default: i64) -> Result<i64> {
        Ok(self.int(name)?.unwrap_or(default))
    }

    /// An integer that is not 0; `false` where it is missing.
    pub fn flag(&self, name: &str) -> Result<bool> {
        Ok(self.int_or(name, 0)? != 0)
    }

    /// Refuses the node where an attribute says something else than `only`, its default.
    pub fn fixed(&self, name: &str, only: i64) -> Result<()> {
        match self.int_or(name, only)? {
            n if n == only => Ok(()),
            n => Err(unknown(name, &n.to_string())),
        }
    }

    /// A count that the node must or, with a default, may have.
    pub fn count(&self, name: &str, default: Option<usize>) -> Result<usize> {
        match (self.int(name)?, default) {
            (Some(n), _) => count(name, n),
            (None, Some(default)) => Ok(default),
            (None, None) => Err(invalid(format!("the attribute `{name}` is missing"))),
        }
    }

    /// A number, or its default.
    pub fn float_or(&self, name: &str, default: f32) -> Result<f32> {
        Ok(self.float(name)?.unwrap_or(default))
    }

    /// `InvalidModel` where the attribute is there and no number.
    pub fn float(&self, name: &str) -> Result<Option<f32>> {
        let attribute = self.attribute(name);
        attribute
            .map(|a| {
                a.f.ok_or_else(|| invalid(format!("the attribute `{name}` is no number")))
            })
            .transpose()
    }

    /// `InvalidModel` where the attribute is there and no string, or not UTF-8.
    pub fn text(&self, name: &str) -> Result<Option<&'a str>> {
        let Some(attribute) = self.attribute(name) else {
            return Ok(None);
        };
        let bytes = attribute
            .s
            .ok_or_else(|| invalid(format!("the attribute `{name}` is no string")))?;
        std::str::from_utf8(bytes)
            .map(Some)
            .map_err(|_| invalid(format!("the attribute `{name}` is not valid UTF-8")))
    }

    /// A string, or its default.
    pub fn text_or(&self, name: &str, default: &'static str) -> Result<&'a str> {
        Ok(self.text(name)?.unwrap_or(default))
    }

    /// A list of integers.
    pub fn ints(&self, name: &str) -> Result<Option<Vec<i64>>> {
        let attribute = self.attribute(name);
        attribute.map(|a| a.ints.ints()).transpose()
    }

    /// Integers that are sizes.
    pub fn counts(&self, name: &str) -> Result<Option<Vec<usize>>> {
        let Some(ints) = self.ints(name)? else {
            return Ok(None);
        };
        let counts = ints.into_iter().map(|n| count(name, n));
        counts.collect::<Result<_>>().map(Some)
    }

    /// A list of numbers.
    pub fn floats(&self, name: &str) -> Result<Option<Vec<f32>>> {
        let attribute = self.attribute(name);
        attribute.map(|a| a.floats.floats()).transpose()
    }

    /// A list of strings; `InvalidModel` where one is not UTF-8.
    pub fn texts(&self, name: &str) -> Result<Option<Vec<String>>> {
        let Some(attribute) = self.attribute(name) else {
            return Ok(None);
        };
        let texts = attribute.strings.iter().map(|s| {
            String::from_utf8(s.to_vec())
                .map_err(|_| invalid(format!("the attribute `{name}` is not valid UTF-8")))
        });
        texts.collect::<Result<_>>().map(Some)
    }

    /// The strings of attribute `name` as a vector.
    pub fn text_list(&self, name: &str) -> Result<Tensor> {
        let texts = self.texts(name)?.filter(|list| !list.is_empty());
        let texts = texts.ok_or_else(|| invalid(format!("the attribute `{name}` is missing")))?;
        let texts: Vec<Arc<str>> = texts.into_iter().map(Arc::from).collect();
        Tensor::from_texts(&[texts.len()], texts)
    }

    /// `InvalidModel` where the attribute is there and no tensor.
    pub fn tensor(&self, name: &str) -> Result<Option<Tensor>> {
        let Some(attribute) = self.attribute(name) else {
            return Ok(None);
        };
        let proto = attribute
            .t
            .as_ref()
            .ok_or_else(|| invalid(format!("the attribute `{name}` is no tensor")))?;
        self.importer.scope.tensors.read(proto).map(Some)
    }

    /// A sparse tensor, written out.
    pub fn sparse_tensor(&self, name: &str) -> Result<Option<Tensor>> {
        let proto = self.attribute(name).and_then(|a| a.sparse_tensor.as_ref());
        let tensors = &self.importer.scope.tensors;
        proto.map(|p| tensors.read_sparse(p)).transpose()
    }

    /// Checks that a tensor which is computed of attributes may be made.
    ///
    /// # Errors
    /// `Limit` where it is too large.
    pub fn check_written_out(&self, dtype: DType, shape: &[usize]) -> Result<()> {
        self.importer
            .scope
            .tensors
            .written_out(dtype, shape)
            .map(drop)
    }

    pub(super) fn graph_attribute(&self, name: &str) -> Result<&'a GraphProto<'a>> {
        let graph = self.attribute(name).and_then(|a| a.g.as_ref());
        graph.ok_or_else(|| invalid(format!("the attribute `{name}` is no graph")))
    }

    /// The type in attribute `name`.
    pub fn kind(&self, name: &str) -> Result<Option<Fact>> {
        let kind = self.attribute(name).and_then(|a| a.kind.as_ref());
        kind.map(fact).transpose()
    }

    /// `Unsupported` where the mapping has not asked for one that has a meaning.
    pub(super) fn refuse_unread_attributes(&self) -> Result<()> {
        let attributes = self.attributes.iter().zip(&self.read);
        for ((name, _), _) in attributes.filter(|(_, read)| !read.get()) {
            if !MAY_GO_UNREAD.contains(name) {
                return Err(unsupported(format!("the attribute `{name}`")));
            }
        }
        Ok(())
    }
}

fn count(name: &str, n: i64) -> Result<usize> {
    usize::try_from(n).map_err(|_| invalid(format!("the attribute `{name}` has the value {n}")))
}

/// An attribute that has a name Kilim does not know.
pub fn unknown(name: &str, value: &str) -> Error {
    unsupported(format!("the attribute {name} = `{value}`"))
}
