//! What the device computes: from a node to a kernel, or the reason why there is none.

use kilim_plugin_abi::guest::{Data, Failure, Kernel, Node, Result, TensorInfo};

/// The sizes of a tensor of rank `N`; `what` names it in the reason why it is refused.
fn sizes<const N: usize>(tensor: Option<&TensorInfo>, what: &str) -> Result<[usize; N]> {
    let shape = tensor.and_then(|t| t.shape).unwrap_or(&[]).iter();
    let sizes: Vec<usize> = shape.filter_map(|&n| usize::try_from(n).ok()).collect();
    let reason = format!("{what} of {} dimensions where {N} are needed", sizes.len());
    <[usize; N]>::try_from(sizes).map_err(|_| Failure::unsupported(reason))
}

/// A number for each of two spatial dimensions.
fn pair(list: &[i64]) -> Result<[usize; 2]> {
    let pair: Vec<usize> = list
        .iter()
        .filter_map(|&n| usize::try_from(n).ok())
        .collect();
    <[usize; 2]>::try_from(pair).map_err(|_| Failure::unsupported("only two dimensions"))
}

/// Whether a Relu is fused into a node; any other activation is refused.
fn relu(node: &Node) -> Result<bool> {
    match node.text("activation") {
        None => Ok(false),
        Some("Relu") => Ok(true),
        Some(other) => Err(Failure::unsupported(format!("no activation {other}"))),
    }
}

/// An input that is not left out.
fn given<T>(inputs: &[Option<T>], i: usize) -> Option<&T> {
    inputs.get(i).and_then(Option::as_ref)
}

fn missing() -> Failure {
    Failure::device("an input is missing")
}

/// A convolution of channels-first data in one group.
pub struct Conv {
    data: [usize; 4],
    weights: [usize; 4],
    result: [usize; 4],
    strides: [usize; 2],
    dilations: [usize; 2],
    begin: [usize; 2],
    relu: bool,
}

impl Conv {
    pub fn of(node: &Node) -> Result<Conv> {
        if node.ints("channels_last") != [0] || node.ints("groups") != [1] {
            return Err(Failure::unsupported("only channels first, in one group"));
        }
        if given(&node.inputs, 3).is_some() {
            return Err(Failure::unsupported("no residual is added"));
        }
        let begin = match (node.text("padding"), node.ints("padding.value")) {
            (Some("Explicit"), [top, left, _, _]) => [*top, *left],
            (Some("Valid"), _) => [0, 0],
            _ => return Err(Failure::unsupported("only padding in numbers")),
        };
        Ok(Conv {
            data: sizes(given(&node.inputs, 0), "data")?,
            weights: sizes(given(&node.inputs, 1), "weights")?,
            result: sizes(node.outputs.first(), "a result")?,
            strides: pair(node.ints("strides"))?,
            dilations: pair(node.ints("dilations"))?,
            begin: pair(&begin)?,
            relu: relu(node)?,
        })
    }

    /// Where along an axis a weight meets the data; `None` in the padding.
    fn meets(&self, axis: usize, result: usize, weight: usize) -> Option<usize> {
        let padded = result * self.strides[axis] + weight * self.dilations[axis];
        let at = padded.checked_sub(self.begin[axis])?;
        (at < self.data[2 + axis]).then_some(at)
    }
}

impl Kernel for Conv {
    fn run(&mut self, inputs: &[Option<&Data>], outputs: &mut [Data]) -> Result {
        let data = given(inputs, 0).ok_or_else(missing)?.f32s();
        let weights = given(inputs, 1).ok_or_else(missing)?.f32s();
        let bias = given(inputs, 2).map(|bias| bias.f32s());
        let [_, filters, height, width] = self.result;
        let [_, channels, rows, columns] = self.weights;
        let each = channels * rows * columns;
        for (i, result) in outputs[0].f32s_mut().iter_mut().enumerate() {
            let (column, row) = (i % width, i / width % height);
            let (filter, image) = (i / width / height % filters, i / width / height / filters);
            let mut sum = bias.map_or(0.0, |bias| bias[filter]);
            for (w, weight) in weights[filter * each..][..each].iter().enumerate() {
                let (x, y, channel) = (w % columns, w / columns % rows, w / columns / rows);
                let at = self.meets(0, row, y).zip(self.meets(1, column, x));
                if let Some((y, x)) = at {
                    let plane = image * channels + channel;
                    sum += data[(plane * self.data[2] + y) * self.data[3] + x] * weight;
                }
            }
            *result = if self.relu { sum.max(0.0) } else { sum };
        }
        Ok(())
    }
}

/// A product of two matrices, and a row that is added to each of its rows.
pub struct Gemm {
    inner: usize,
    columns: usize,
    relu: bool,
}

impl Gemm {
    pub fn of(node: &Node) -> Result<Gemm> {
        let turned = node.ints("transpose_a") != [0] || node.ints("transpose_b") != [0];
        if turned || node.float_or("alpha", 1.0) != 1.0 || node.float_or("beta", 1.0) != 1.0 {
            return Err(Failure::unsupported("only matrices as they are"));
        }
        let [inner, columns] = sizes(given(&node.inputs, 1), "a matrix")?;
        if let Some(row) = given(&node.inputs, 2)
            && sizes(Some(row), "what is added")? != [columns]
        {
            return Err(Failure::unsupported("only a whole row is added"));
        }
        let relu = relu(node)?;
        Ok(Gemm {
            inner,
            columns,
            relu,
        })
    }
}

impl Kernel for Gemm {
    fn run(&mut self, inputs: &[Option<&Data>], outputs: &mut [Data]) -> Result {
        let a = given(inputs, 0).ok_or_else(missing)?.f32s();
        let b = given(inputs, 1).ok_or_else(missing)?.f32s();
        let added = given(inputs, 2).map(|added| added.f32s());
        for (i, result) in outputs[0].f32s_mut().iter_mut().enumerate() {
            let (row, column) = (i / self.columns, i % self.columns);
            let products =
                (0..self.inner).map(|k| a[row * self.inner + k] * b[k * self.columns + column]);
            let sum = products.sum::<f32>() + added.map_or(0.0, |added| added[column]);
            *result = if self.relu { sum.max(0.0) } else { sum };
        }
        Ok(())
    }
}
