//! A network as a file describes it: layers in the order in which they run, and the blobs between them.

use std::collections::HashMap;

use kilim_core::Limits;
use kilim_core::error::{Error, ErrorCode, Result};

use super::params::Params;

/// What every file begins with, in digits or as a little-endian word.
pub const MAGIC: u32 = 7_767_517;

/// A layer. Blobs are numbered in the order in which they are written.
pub struct LayerInfo {
    pub kind: String,
    pub name: String,
    pub bottoms: Vec<usize>,
    pub tops: Vec<usize>,
    pub params: Params,
}

/// A whole network.
pub struct Network {
    pub layers: Vec<LayerInfo>,
    /// The names of blobs.
    pub blobs: Vec<String>,
}

/// The blobs that were named so far.
#[derive(Default)]
pub struct Blobs {
    names: Vec<String>,
    numbers: HashMap<String, usize>,
}

impl Blobs {
    /// The number of a blob that a layer reads.
    ///
    /// # Errors
    /// `InvalidGraph` where no layer before writes it.
    pub fn read(&self, name: &str) -> Result<usize> {
        self.numbers.get(name).copied().ok_or_else(|| {
            Error::new(
                ErrorCode::InvalidGraph,
                "no layer before writes a blob that one reads",
            )
            .with_input(name)
        })
    }

    /// A new blob.
    ///
    /// # Errors
    /// `InvalidGraph` where a layer before writes it, too.
    pub fn write(&mut self, name: &str) -> Result<usize> {
        let number = self.names.len();
        if self.numbers.insert(name.to_string(), number).is_some() {
            let message = "two layers write the same blob";
            return Err(Error::new(ErrorCode::InvalidGraph, message).with_input(name));
        }
        self.names.push(name.to_string());
        Ok(number)
    }

    /// The names in order.
    pub fn into_names(self) -> Vec<String> {
        self.names
    }
}

/// The number of layers that a file announces.
///
/// # Errors
/// `InvalidModel` where there are none, `Limit` where they are too many.
pub fn layers(announced: i64, limits: &Limits) -> Result<usize> {
    let layers = usize::try_from(announced).unwrap_or(0);
    if layers == 0 {
        return Err(super::invalid("the network has no layers"));
    }
    limits.check_nodes(layers)?;
    Ok(layers)
}
