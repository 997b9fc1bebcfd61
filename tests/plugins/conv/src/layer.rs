//! Nodes of the device: which it takes, and what they are.

use std::fmt::{self, Display, Formatter};

use kilim_plugin_abi::FLOAT32;
use kilim_plugin_abi::guest::{Failure, Node, Result, TensorInfo};

/// A convolution of an image.
#[derive(Clone)]
pub struct Conv {
    pub batch: usize,
    /// Channels that are read.
    pub from: usize,
    /// Channels that are written.
    pub to: usize,
    pub groups: usize,
    pub image: [usize; 2],
    pub result: [usize; 2],
    pub kernel: [usize; 2],
    pub strides: [usize; 2],
    pub dilations: [usize; 2],
    pub before: [usize; 2],
    /// Whether channels come last.
    pub last: bool,
    pub relu: bool,
}

/// A node is one convolution or two.
#[derive(Clone)]
pub struct Layer {
    pub convolutions: Vec<Conv>,
}

fn refused<T>(reason: &str) -> Result<T> {
    Err(Failure::unsupported(reason))
}

fn sizes<const N: usize>(list: &[i64]) -> Result<[usize; N]> {
    let sizes = list.iter().filter_map(|&n| usize::try_from(n).ok());
    let sizes: Vec<usize> = sizes.collect();
    <[usize; N]>::try_from(sizes).or(refused("only images"))
}

impl Conv {
    /// The convolution that the attributes with a prefix say, of data of the sizes `x`.
    fn of(node: &Node, prefix: &str, x: [usize; 4], weights: Option<&TensorInfo>) -> Result<Conv> {
        let named = |name: &str| format!("{prefix}{name}");
        let [to, each, rows, columns] = sizes(weights.and_then(|w| w.shape).unwrap_or(&[]))?;
        let strides = sizes(node.ints(&named("strides")))?;
        let dilations = sizes(node.ints(&named("dilations")))?;
        let [groups] = sizes(node.ints(&named("groups")))?;
        let padding: [usize; 4] = match node.text(&named("padding")) {
            Some("Valid") => [0; 4],
            Some("Explicit") => sizes(node.ints(&named("padding.value")))?,
            _ => return refused("only padding that is written out"),
        };
        let relu = match node.text(&named("activation")) {
            None | Some("None") => false,
            Some("Relu") => true,
            _ => return refused("only Relu is merged"),
        };
        let last = node.ints(&named("channels_last")) == [1];
        let (batch, from, image) = match last {
            true => (x[0], x[3], [x[1], x[2]]),
            false => (x[0], x[1], [x[2], x[3]]),
        };
        if groups == 0 || each.checked_mul(groups) != Some(from) || to % groups != 0 {
            return refused("channels do not fit");
        }
        let kernel = [rows, columns];
        let mut result = [0; 2];
        for axis in 0..2 {
            let reach = kernel[axis].checked_sub(1);
            let reach = reach.and_then(|n| n.checked_mul(dilations[axis])?.checked_add(1));
            let padded = image[axis].checked_add(padding[axis]);
            let padded = padded.and_then(|n| n.checked_add(padding[axis + 2]));
            let room = padded
                .zip(reach)
                .and_then(|(n, reach)| n.checked_sub(reach));
            let Some(steps) = room.and_then(|room| room.checked_div(strides[axis])) else {
                return refused("the kernel is larger than the data");
            };
            result[axis] = steps + 1;
        }
        Ok(Conv {
            batch,
            from,
            to,
            groups,
            image,
            result,
            kernel,
            strides,
            dilations,
            before: [padding[0], padding[1]],
            last,
            relu,
        })
    }

    /// The sizes of what is computed.
    pub fn sizes(&self) -> [usize; 4] {
        let [height, width] = self.result;
        match self.last {
            true => [self.batch, height, width, self.to],
            false => [self.batch, self.to, height, width],
        }
    }
}

/// What the speed of a convolution depends on.
impl Display for Conv {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let ([rows, columns], [height, width]) = (self.kernel, self.image);
        let (from, to, groups) = (self.from, self.to, self.groups);
        write!(
            f,
            "{rows}x{columns}, {from} to {to} channels in {groups} groups, {height}x{width}"
        )
    }
}

/// Whether a node is one of the device's own.
pub fn is_pair(node: &Node) -> bool {
    (node.domain, node.op) == ("com.example", "ConvPair")
}

impl Layer {
    /// The convolutions of a node. Inputs of one are data, weights, bias and what is added before the Relu; those of a pair data,
    /// weights, bias, weights, bias.
    pub fn of(node: &Node) -> Result<Layer> {
        let prefixes: &[&str] = match (node.domain, node.op) {
            _ if is_pair(node) => &["first.", "second."],
            ("", "Conv") => &[""],
            _ => return refused("only Conv"),
        };
        for (i, input) in node.inputs.iter().enumerate() {
            match input {
                Some(_) if i > prefixes.len() + 2 => return refused("another number of inputs"),
                Some(input) if input.dtype != FLOAT32 => return refused("only float32"),
                _ => {}
            }
        }
        let input = |i: usize| node.inputs.get(i).and_then(Option::as_ref);
        let mut x = sizes(input(0).and_then(|x| x.shape).unwrap_or(&[]))?;
        let mut convolutions = Vec::with_capacity(prefixes.len());
        for (i, prefix) in prefixes.iter().enumerate() {
            let conv = Conv::of(node, prefix, x, input(1 + 2 * i))?;
            x = conv.sizes();
            convolutions.push(conv);
        }
        Ok(Layer { convolutions })
    }

    /// The sizes of what is computed.
    pub fn result(&self) -> [usize; 4] {
        self.convolutions.last().map_or([0; 4], Conv::sizes)
    }
}
