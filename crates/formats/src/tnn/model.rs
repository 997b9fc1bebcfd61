//! The weights of a network (`InterpretModel` in `interpreter/tnn/model_interpreter.cc`): the buffers of each layer by its name, and
//! constants by the names of their blobs.

use std::collections::HashMap;

use kilim_core::Limits;
use kilim_core::dtype::DType;
use kilim_core::error::{Error, ErrorCode, Result, unsupported};
use kilim_core::tensor::Tensor;

use super::network::Network;
use super::stream::{Buffer, Stream, WITH_DIMS};
use super::{invalid, ops};
use crate::ModelFile;
use crate::beside::Pair;

/// `m.tnnproto` beside `m.tnnmodel`.
const FILES: Pair = Pair {
    format: "TNN",
    networks: &[".tnnproto"],
    weights: ".tnnmodel",
};

/// What files begin with, beside [`WITH_DIMS`]. Those of before begin with the number of layers.
const WITHOUT_DIMS: u32 = 0xFABC_0002;

/// The bits of the number of layers, and what TNN itself allows.
const COUNT: u32 = 0x1FFF_FFFF;
const MOST_LAYERS: u32 = 10_000;

/// Numbers of element types (`DataType` in `include/tnn/core/common.h`).
pub fn element_type(number: i64) -> Result<DType> {
    Ok(match number {
        0 => DType::F32,
        1 => DType::F16,
        2 => DType::I8,
        3 => DType::I32,
        4 => DType::BF16,
        5 => DType::I64,
        6 => DType::U32,
        other => return Err(unsupported(format!("element type number {other}"))),
    })
}

/// What a layer has in the file, in the order in which it stands there; `None` where a buffer is empty or left out.
pub type Stored = Vec<Option<Buffer>>;

/// All weights that could be read.
pub struct Model {
    layers: HashMap<String, Stored>,
    constants: HashMap<String, Tensor>,
    /// Why the others could not.
    missing: Option<Error>,
    /// Whether others were asked for.
    missed: bool,
}

impl Model {
    /// The weights that belong to a network.
    ///
    /// # Errors
    /// `InvalidModel` where the file is garbled, `Unsupported` where it is of another version.
    pub fn of(network: &Network, source: &ModelFile, limits: &Limits) -> Result<Model> {
        let mut model = Model {
            layers: HashMap::new(),
            constants: HashMap::new(),
            missing: None,
            missed: false,
        };
        match FILES.weights_of(source, limits) {
            Ok(path) => {
                let size = source.external_size(&path, limits)?;
                let mut stream = Stream::new(source, limits, &path, size);
                let read = model.read(&mut stream, network);
                read.map_err(|error| match error.code() {
                    ErrorCode::InvalidModel => error.with_hint(FILES.hint()),
                    _ => error,
                })?;
            }
            Err(error) => model.missing = Some(error),
        }
        Ok(model)
    }

    fn read(&mut self, stream: &mut Stream, network: &Network) -> Result<()> {
        let kinds: HashMap<&str, &str> = network
            .layers
            .iter()
            .map(|layer| (&*layer.name, &*layer.kind))
            .collect();
        match stream.peek()? {
            WITHOUT_DIMS | WITH_DIMS => {
                stream.word()?;
            }
            other if other >> 16 == WITH_DIMS >> 16 => {
                return Err(unsupported("TNN weights of another version").with_got(other));
            }
            _ => {}
        }
        let count = stream.word()? & COUNT;
        if count >= MOST_LAYERS {
            return Err(invalid("these are no weights of a TNN network"));
        }
        for _ in 0..count {
            // The number of the kind, which its name says, too.
            stream.word()?;
            let word = stream.text()?;
            let (kind, name) = match ops::layout(&word) {
                Some(_) => (word.clone(), stream.text()?),
                // Older files have the name alone.
                None => match kinds.get(&*word) {
                    Some(&kind) => (kind.to_string(), word),
                    None => {
                        let message = "the weights are of a layer that the network does not have";
                        return Err(invalid(message).with_got(word));
                    }
                },
            };
            let Some(layout) = ops::layout(&kind) else {
                // Nobody knows where those of the next layer begin.
                let what = format!("weights of {kind}, in front of others");
                self.missing = Some(unsupported(what));
                return Ok(());
            };
            let stored = layout(stream).map_err(|error| error.at(&name, &kind))?;
            self.layers.insert(name, stored);
        }
        if stream.left() < 8 {
            return Ok(());
        }
        stream.word()?;
        for _ in 0..stream.int()?.max(0) {
            let name = stream.text()?;
            if let Some(buffer) = stream.buffer()? {
                self.constants.insert(name, buffer.tensor);
            }
        }
        Ok(())
    }

    /// What the file has of a layer.
    pub fn stored(&self, layer: &str) -> Option<&Stored> {
        self.layers.get(layer)
    }

    /// The constant that a blob is.
    pub fn constant(&self, blob: &str) -> Option<&Tensor> {
        self.constants.get(blob)
    }

    /// Whether the weights of layers are not there, so that only their shapes are known.
    pub fn is_missing(&self) -> bool {
        self.missing.is_some()
    }

    /// Notes that weights were asked for that are not there.
    pub fn miss(&mut self) {
        self.missed = true;
    }

    /// Why weights that layers need are not there; nothing where they are, or the file is only looked at.
    ///
    /// # Errors
    /// What the source said of the file.
    pub fn check(&self, structure: bool) -> Result<()> {
        match &self.missing {
            Some(error) if self.missed && !(structure && error.code() == ErrorCode::Io) => {
                Err(error.clone())
            }
            _ => Ok(()),
        }
    }
}
