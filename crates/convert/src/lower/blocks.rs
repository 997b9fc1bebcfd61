//! Blocks of space that become batches, and back.

use kilim_core::error::{Result, unsupported};
use kilim_core::graph::ValueId;
use kilim_core::ops::{Pad, PadMode, Slice};
use kilim_formats::build::GraphBuilder;

use super::Lowered;

/// The sizes of the blocks, what stands before and behind each axis of space, and the dimensions of the data behind the batch.
struct Blocks {
    sizes: Vec<i64>,
    edges: Vec<[i64; 2]>,
    dims: Vec<i64>,
}

fn read(b: &GraphBuilder, node: &Lowered) -> Result<Blocks> {
    let open = || unsupported("blocks or dimensions that are known only at run time");
    let constant = |i: usize| b.constant(node.input(i)?).ok_or_else(open)?.to_i64s();
    let (sizes, edges) = (constant(1)?, constant(2)?);
    let shape = b.known_shape(node.input(0)?).ok_or_else(open)?;
    let dims = shape.0.iter().skip(1).map(|d| Some(d.known()? as i64));
    let dims = dims.collect::<Option<Vec<_>>>().ok_or_else(open)?;
    if sizes.len() > dims.len() || edges.len() != 2 * sizes.len() || sizes.iter().any(|&n| n < 1) {
        return Err(unsupported("blocks that do not fit their data"));
    }
    let edges = edges.chunks_exact(2).map(|pair| [pair[0], pair[1]]);
    Ok(Blocks {
        edges: edges.collect(),
        sizes,
        dims,
    })
}

pub fn space_to_batch(b: &mut GraphBuilder, node: &Lowered) -> Result<Option<Vec<ValueId>>> {
    let Blocks { sizes, edges, dims } = read(b, node)?;
    let (m, rank) = (sizes.len(), dims.len() + 1);
    let mut pads = vec![0; 2 * rank];
    for (i, [before, after]) in edges.iter().enumerate() {
        pads[1 + i] = *before;
        pads[rank + 1 + i] = *after;
    }
    let x = node.input(0)?;
    let zero = b.number(0.0, x)?;
    let pads = b.i64s(&pads)?;
    let mode = PadMode::Constant;
    let x = b.op(Pad { mode }, &[x, pads, zero])?;
    let mut split = vec![-1];
    let mut joined = vec![-1];
    for (i, &size) in sizes.iter().enumerate() {
        let length = (dims[i] + edges[i][0] + edges[i][1]) / size;
        split.extend([length, size]);
        joined.push(length);
    }
    split.extend(&dims[m..]);
    joined.extend(&dims[m..]);
    let x = b.reshape(x, &split)?;
    // Places in the blocks come first, then the batch.
    let perm = (0..m).map(|i| 2 * i + 2).chain([0]);
    let perm = perm.chain((0..m).map(|i| 2 * i + 1));
    let perm: Vec<usize> = perm.chain(2 * m + 1..rank + m).collect();
    let x = b.transpose(x, &perm)?;
    Ok(Some(vec![b.reshape(x, &joined)?]))
}

pub fn batch_to_space(b: &mut GraphBuilder, node: &Lowered) -> Result<Option<Vec<ValueId>>> {
    let Blocks { sizes, edges, dims } = read(b, node)?;
    let (m, rank) = (sizes.len(), dims.len() + 1);
    let split: Vec<i64> = sizes
        .iter()
        .copied()
        .chain([-1])
        .chain(dims.clone())
        .collect();
    let x = b.reshape(node.input(0)?, &split)?;
    let mut perm = vec![m];
    let mut joined = vec![-1];
    for (i, &size) in sizes.iter().enumerate() {
        perm.extend([m + 1 + i, i]);
        joined.push(dims[i] * size);
    }
    perm.extend(2 * m + 1..rank + m);
    joined.extend(&dims[m..]);
    let x = b.transpose(x, &perm)?;
    let x = b.reshape(x, &joined)?;
    let starts: Vec<i64> = edges.iter().map(|[before, _]| *before).collect();
    let ends = edges.iter().enumerate();
    let ends: Vec<i64> = ends
        .map(|(i, [_, after])| dims[i] * sizes[i] - after)
        .collect();
    let axes: Vec<i64> = (1..=m as i64).collect();
    let mut inputs = vec![x];
    for list in [starts, ends, axes] {
        inputs.push(b.i64s(&list)?);
    }
    Ok(Some(vec![b.op(Slice, &inputs)?]))
}
