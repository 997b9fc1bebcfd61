//! The inputs of a network: what the file says of them, and what follows from the layers that read them.

use std::collections::HashMap;

use kilim_core::error::Result;
use kilim_core::{DType, Dim, Fact, Shape};

use super::import::Sizes;
use super::network::{LayerInfo, Network};
use super::ops;

/// The rank of blobs that nothing else tells: they are pictures.
const PICTURE: usize = 3;

/// The names of the dimensions of blobs by rank, the outermost first.
const NAMES: [&[&str]; 5] = [
    &[],
    &["w"],
    &["h", "w"],
    &["c", "h", "w"],
    &["c", "d", "h", "w"],
];

/// Whether the file gives a width or height to an input of a network.
pub fn give_sizes(network: &Network) -> Result<bool> {
    let mut inputs = network.layers.iter().filter(|layer| is_input(layer));
    inputs.try_fold(false, |any, layer| {
        let dims = declared(layer)?;
        Ok(any || dims.len() >= PICTURE && dims[1..].iter().any(|&d| d > 0))
    })
}

/// Whether a layer gives inputs, one or several of one shape.
pub fn is_input(layer: &LayerInfo) -> bool {
    layer.kind == "Input"
}

/// The inputs by the number of their blob.
///
/// # Errors
/// `InvalidModel` where a layer has parameters of another form.
pub fn facts(network: &Network, sizes: Sizes) -> Result<HashMap<usize, Fact>> {
    let readers = readers(network);
    let layers = network.layers.iter().filter(|layer| is_input(layer));
    let inputs: Vec<_> = layers
        .flat_map(|l| l.tops.iter().map(move |&top| (l, top)))
        .collect();
    let mut facts = HashMap::new();
    for &(layer, top) in &inputs {
        let prefix = match inputs.len() {
            1 => String::new(),
            _ => format!("{}.", network.blobs[top]),
        };
        let read = Read::of(network, &readers, top);
        facts.insert(top, read.fact(&declared(layer)?, sizes, &prefix));
    }
    Ok(facts)
}

/// The dimensions that a file gives to an input, the outermost first; empty where it does not even give its rank.
fn declared(layer: &LayerInfo) -> Result<Vec<usize>> {
    // Width, height, channels, depth.
    let params = &layer.params;
    let [w, h, c, d] = [
        params.count(0, 0)?,
        params.count(1, 0)?,
        params.count(2, 0)?,
        params.count(11, 0)?,
    ];
    Ok(match (w, h, d, c) {
        (0, 0, 0, 0) => Vec::new(),
        (w, 0, 0, 0) => vec![w],
        (w, h, 0, 0) => vec![h, w],
        (w, h, 0, c) => vec![c, h, w],
        (w, h, d, c) => vec![c, d, h, w],
    })
}

/// The layers that read each blob, each with the place of the blob among its inputs.
fn readers(network: &Network) -> Vec<Vec<(usize, usize)>> {
    let mut readers = vec![Vec::new(); network.blobs.len()];
    for (i, layer) in network.layers.iter().enumerate() {
        for (place, &blob) in layer.bottoms.iter().enumerate() {
            readers[blob].push((i, place));
        }
    }
    readers
}

/// What the layers that read a blob say of it.
#[derive(Default)]
struct Read {
    rank: Option<usize>,
    channels: Option<usize>,
    /// Whether it holds integers that choose rows.
    indices: bool,
}

impl Read {
    /// What is known of an input with these dimensions in the file. Those that are open have names that begin with `prefix`.
    fn fact(&self, declared: &[usize], sizes: Sizes, prefix: &str) -> Fact {
        let rank = match declared.len() {
            0 => self.rank.unwrap_or(PICTURE),
            rank => rank,
        };
        let dim = |(axis, name): (usize, &&str)| match declared.get(axis) {
            // Where the network is for pictures, it is made for their channels.
            Some(&n) if n > 0 && (rank < PICTURE || axis == 0 || sizes == Sizes::Fixed) => {
                Dim::Known(n)
            }
            _ => match self.channels {
                Some(channels) if axis == 0 => Dim::Known(channels),
                _ => Dim::Symbol(format!("{prefix}{name}").into()),
            },
        };
        let dims = NAMES[rank].iter().enumerate().map(dim);
        let shape = Shape(std::iter::once(Dim::Known(1)).chain(dims).collect());
        let dtype = if self.indices { DType::I32 } else { DType::F32 };
        Fact::new(dtype, shape)
    }

    fn of(network: &Network, readers: &[Vec<(usize, usize)>], blob: usize) -> Read {
        let mut read = Read::default();
        let (mut seen, mut next) = (vec![false; network.blobs.len()], vec![blob]);
        while let Some(blob) = next.pop() {
            if std::mem::replace(&mut seen[blob], true) {
                continue;
            }
            for &(i, place) in readers[blob].iter().rev() {
                let layer = &network.layers[i];
                let Some(row) = ops::find(&layer.kind) else {
                    continue;
                };
                match row.ranks.get(place).or(row.ranks.last()) {
                    None => next.extend(&layer.tops),
                    Some(&rank) => {
                        read.rank = read.rank.or((rank > 0).then_some(rank));
                        read.channels = read.channels.or_else(|| channels(layer));
                        read.indices |= layer.kind == "Embed";
                    }
                }
            }
        }
        read
    }
}

/// The channels that a convolution expects, which follow from the number of its weights.
fn channels(layer: &LayerInfo) -> Option<usize> {
    if !layer.kind.starts_with("Convolution") || layer.kind.ends_with("3D") {
        return None;
    }
    let count = |id, default| layer.params.count(id, default).ok();
    let (width, outputs) = (count(1, 0)?, count(0, 0)?);
    let height = if layer.kind.ends_with("1D") {
        1
    } else {
        count(11, width)?
    };
    let groups = if layer.kind.contains("DepthWise") {
        count(7, 1)?
    } else {
        1
    };
    let for_each = outputs.checked_mul(width)?.checked_mul(height)?;
    let channels = count(6, 0)?.checked_div(for_each)?.checked_mul(groups)?;
    (channels > 0).then_some(channels)
}
