//! Gather, GatherElements, GatherND.

use std::ops::Range;
use std::sync::Arc;

use kilim_core::backend::NodeSpec;
use kilim_core::error::shape_error;
use kilim_core::ops::{Gather, GatherElements, GatherNd, normalize_axis};
use kilim_core::tensor::AlignedBytes;
use kilim_core::{Result, Tensor};
use kilim_host::elements::{Codec, Walk, Wide, contiguous_strides};
use kilim_host::rules::required;
use kilim_host::{Build, CpuRun, Io, Kernel, PackKey, Table, by};

use super::position;
use crate::reduce::Along;

pub fn build(op: &Gather, node: &NodeSpec, build: &mut Build) -> Result<Box<dyn Kernel>> {
    let (x, indices) = (required(node, 0)?, required(node, 1)?);
    let along = Along::new(&x.shape, normalize_axis(op.axis, x.shape.len())?);
    let rows = Rows {
        outer: along.outer,
        n: along.n,
        count: indices.elements(),
        indices: i64::codec(indices.dtype),
    };
    let Some(narrow) = x.value.as_ref().and_then(Tensor::narrow) else {
        let row = along.inner * x.dtype.size();
        return Ok(Box::new(Copied { rows, row }));
    };
    let key = PackKey {
        kind: "halves",
        parameters: [0; 4],
    };
    Ok(Box::new(Widened {
        rows,
        row: along.inner,
        halves: build.pack(node, 0, key, |cpu| narrow.copy_bytes(cpu))?,
        codec: f32::codec(narrow.dtype()),
    }))
}

/// The rows of the data that indices name.
struct Rows {
    outer: usize,
    n: usize,
    count: usize,
    indices: Codec<i64>,
}

impl Rows {
    /// How many rows the output has.
    fn len(&self) -> usize {
        self.outer * self.count
    }

    /// The row of the data that a row of the output is.
    ///
    /// # Errors
    /// `InvalidValue` where the index is out of range.
    fn at(&self, indices: &[u8], row: usize) -> Result<usize> {
        let i = self.indices.get(indices, row % self.count);
        Ok(row / self.count * self.n + position(i, self.n)?)
    }
}

struct Copied {
    rows: Rows,
    /// Bytes behind the axis.
    row: usize,
}

impl Kernel for Copied {
    fn run(&self, io: &mut Io) -> Result<()> {
        let (x, indices) = (io.input_bytes(0), io.input_bytes(1));
        let y = io.output_bytes(0);
        if y.is_empty() {
            return Ok(());
        }
        let (rows, cost) = (self.rows.len(), row_cost(self.row));
        io.cpu().rows(rows, by(y, self.row), cost, |piece, y, cpu| {
            for (row, y) in piece.zip(y.chunks_exact_mut(self.row)) {
                let at = self.rows.at(indices, row)? * self.row;
                cpu.copy(&x[at..at + self.row], y)?;
            }
            Ok(())
        })
    }
}

/// Rows of `float32` that were widened from half precision: those that are named are widened when they are.
struct Widened {
    rows: Rows,
    /// Elements behind the axis.
    row: usize,
    halves: Arc<AlignedBytes>,
    codec: Codec<f32>,
}

impl Kernel for Widened {
    fn run(&self, io: &mut Io) -> Result<()> {
        let indices = io.input_bytes(1);
        let y = io.output::<f32>(0);
        if y.is_empty() {
            return Ok(());
        }
        let (rows, cost) = (self.rows.len(), row_cost(self.row * size_of::<f32>()));
        io.cpu().rows(rows, by(y, self.row), cost, |piece, y, cpu| {
            for (row, y) in piece.zip(y.chunks_exact_mut(self.row)) {
                let at = self.rows.at(indices, row)? * self.row;
                cpu.long_pieces(self.row, 1, |part| {
                    let first = at + part.start;
                    self.codec.load(self.halves.as_slice(), first, &mut y[part]);
                    Ok(())
                })?;
            }
            Ok(())
        })
    }
}

/// Operations of finding a row of so many bytes, and copying it.
pub fn row_cost(bytes: usize) -> usize {
    8 + bytes / 8
}

pub fn build_elements(
    op: &GatherElements,
    node: &NodeSpec,
    _: &mut Build,
) -> Result<Box<dyn Kernel>> {
    let (x, indices) = (required(node, 0)?, required(node, 1)?);
    let axis = normalize_axis(op.axis, x.shape.len())?;
    Ok(Box::new(Elements {
        lines: element_lines(&x.shape, &indices.shape, axis)?,
        size: x.dtype.size(),
        indices: i64::codec(indices.dtype),
    }))
}

/// The positions of a tensor of indices in the data that they are about: all axes but one are
/// those of the indices.
pub struct ElementLines {
    walk: Walk<1>,
    n: usize,
    stride: usize,
}

pub fn element_lines(data: &[usize], indices: &[usize], axis: usize) -> Result<ElementLines> {
    if data.len() != indices.len() {
        return Err(shape_error("data and indices have different ranks"));
    }
    let beyond = (0..data.len()).find(|&d| d != axis && indices[d] > data[d]);
    if let Some(d) = beyond
        && !indices.contains(&0)
    {
        return Err(shape_error(format!("the indices reach past axis {d}"))
            .with_expected(format!("at most {}", data[d]))
            .with_got(indices[d]));
    }
    let mut strides = contiguous_strides(data);
    let stride = strides[axis] as usize;
    strides[axis] = 0;
    Ok(ElementLines {
        walk: Walk::new(indices, [&strides]),
        n: data[axis],
        stride,
    })
}

impl ElementLines {
    /// How many indices there are.
    pub fn len(&self) -> usize {
        self.walk.len()
    }

    /// Calls `f` with the number of each index of `range` and the element of the data that it names.
    ///
    /// # Errors
    /// `InvalidValue` where an index is out of range, and those of `f`.
    pub fn visit(
        &self,
        range: Range<usize>,
        index: impl Fn(usize) -> i64,
        mut f: impl FnMut(usize, usize) -> Result<()>,
    ) -> Result<()> {
        let (_, [step]) = self.walk.row();
        let begin = range.start;
        self.walk.spans(range, |span| {
            let mut base = span.at[0];
            for i in 0..span.len {
                let i = begin + span.first + i;
                let at = position(index(i), self.n)?;
                f(i, base as usize + at * self.stride)?;
                base += step;
            }
            Ok(())
        })
    }
}

struct Elements {
    lines: ElementLines,
    size: usize,
    indices: Codec<i64>,
}

impl Kernel for Elements {
    fn run(&self, io: &mut Io) -> Result<()> {
        let indices = io.input_bytes(1);
        let index = |i| self.indices.get(indices, i);
        let (x, y) = (io.input_bytes(0), io.output_bytes(0));
        let (n, size) = (self.lines.len(), self.size);
        io.cpu().rows(n, by(y, size), 8, |piece, y, _| {
            let first = piece.start;
            self.lines.visit(piece, index, |i, at| {
                y[(i - first) * size..][..size].copy_from_slice(&x[at * size..][..size]);
                Ok(())
            })
        })
    }
}

pub fn build_nd(op: &GatherNd, node: &NodeSpec, _: &mut Build) -> Result<Box<dyn Kernel>> {
    let (x, indices) = (required(node, 0)?, required(node, 1)?);
    let slices = Slices::new(&x.shape, &indices.shape, op.batch_dims)?;
    Ok(Box::new(GatherSlices {
        slices,
        size: x.dtype.size(),
        indices: i64::codec(indices.dtype),
    }))
}

/// What index tuples of GatherND and ScatterND name: slices of the data.
pub struct Slices {
    /// Tuples in all, and in each batch.
    pub tuples: usize,
    per_batch: usize,
    batch_step: usize,
    /// Extent and stride of each axis that a tuple indexes.
    axes: Vec<(usize, usize)>,
    /// Elements of a slice.
    pub slice: usize,
}

impl Slices {
    pub fn new(data: &[usize], indices: &[usize], batch: usize) -> Result<Slices> {
        let bad = || shape_error("the indices do not fit the data");
        let (&depth, lead) = indices.split_last().ok_or_else(bad)?;
        if batch > lead.len() || batch + depth > data.len() {
            return Err(bad());
        }
        let strides = contiguous_strides(data);
        let axes = (batch..batch + depth)
            .map(|d| (data[d], strides[d] as usize))
            .collect();
        Ok(Slices {
            tuples: lead.iter().product(),
            per_batch: lead[batch..].iter().product(),
            batch_step: data[batch..].iter().product(),
            axes,
            slice: data[batch + depth..].iter().product(),
        })
    }

    /// The first element of the slice that tuple `t` names.
    pub fn at(&self, t: usize, index: impl Fn(usize) -> i64) -> Result<usize> {
        let mut at = t / self.per_batch.max(1) * self.batch_step;
        for (k, &(n, stride)) in self.axes.iter().enumerate() {
            at += position(index(t * self.axes.len() + k), n)? * stride;
        }
        Ok(at)
    }
}

struct GatherSlices {
    slices: Slices,
    size: usize,
    indices: Codec<i64>,
}

impl Kernel for GatherSlices {
    fn run(&self, io: &mut Io) -> Result<()> {
        let indices = io.input_bytes(1);
        let (x, y) = (io.input_bytes(0), io.output_bytes(0));
        let (tuples, bytes) = (self.slices.tuples, self.slices.slice * self.size);
        let cost = row_cost(bytes);
        io.cpu().rows(tuples, by(y, bytes), cost, |piece, y, cpu| {
            let first = piece.start;
            for t in piece {
                let at = self.slices.at(t, |i| self.indices.get(indices, i))? * self.size;
                cpu.copy(&x[at..][..bytes], &mut y[(t - first) * bytes..][..bytes])?;
            }
            Ok(())
        })
    }
}

/// Copies rows of whatever size by number; for selections that were made when the kernel was built.
pub struct Pick {
    pub rows: Table<usize>,
    pub along: Along,
    pub dtype: kilim_core::DType,
}

impl Pick {
    /// Copies the rows of `x`, a tensor's bytes, to `y`.
    ///
    /// # Errors
    /// `Aborted` where the run is to stop.
    pub fn run(&self, cpu: &CpuRun, x: &[u8], y: &mut [u8]) -> Result<()> {
        let Along { outer, n, inner } = self.along;
        let (count, bytes) = (self.rows.len(), inner * self.dtype.size());
        let cost = row_cost(bytes);
        cpu.rows(outer * count, by(y, bytes), cost, |piece, y, cpu| {
            for (at, y) in piece.zip(y.chunks_exact_mut(bytes.max(1))) {
                let row = at / count * n + self.rows[at % count];
                cpu.copy(&x[row * bytes..][..bytes], y)?;
            }
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{run, run_as, run_f32};
    use kilim_core::{DType, ErrorCode};
    use kilim_host::testing::tensor;

    #[test]
    fn gathers_along_any_axis() {
        let x: Vec<i32> = (0..24).collect();
        let x = tensor(&[2, 3, 4], &x);
        let i = tensor::<i32>(&[2], &[2, -3]);
        let y = run_as::<i32>(&Gather { axis: 1 }, &[&x, &i], &[2, 2, 4]);
        assert_eq!(y[..8], [8, 9, 10, 11, 0, 1, 2, 3]);
        assert_eq!(y[8..], [20, 21, 22, 23, 12, 13, 14, 15]);
        let i = tensor::<i64>(&[], &[1]);
        let y = run_as::<i32>(&Gather { axis: -1 }, &[&x, &i], &[2, 3]);
        assert_eq!(y, [1, 5, 9, 13, 17, 21]);
    }

    #[test]
    fn an_index_out_of_range_is_an_error() {
        let x = tensor::<f32>(&[3], &[0.0; 3]);
        let i = tensor::<i64>(&[1], &[3]);
        let e = run(
            &Gather { axis: 0 },
            &[Some(&x), Some(&i)],
            &[(DType::F32, &[1])],
        )
        .unwrap_err();
        assert_eq!(e.code(), ErrorCode::InvalidValue);
        assert_eq!(e.node(), Some("test"));
    }

    #[test]
    fn indices_beyond_another_axis_are_an_error() {
        let x = tensor::<f32>(&[2, 2], &[0.0; 4]);
        let i = tensor::<i64>(&[3, 1], &[0; 3]);
        let e = run(
            &GatherElements { axis: 1 },
            &[Some(&x), Some(&i)],
            &[(DType::F32, &[3, 1])],
        )
        .unwrap_err();
        assert_eq!(e.code(), ErrorCode::Shape);
    }

    #[test]
    fn elements_and_tuples() {
        let x = tensor::<i8>(&[3, 3], &[1, 2, 3, 4, 5, 6, 7, 8, 9]);
        let i = tensor::<i64>(&[2, 3], &[1, 2, 0, 2, 0, 0]);
        let y = run_as::<i8>(&GatherElements { axis: 0 }, &[&x, &i], &[2, 3]);
        assert_eq!(y, [4, 8, 3, 7, 2, 3]);
        let i = tensor::<i64>(&[2, 2], &[0, -1, 2, 1]);
        let y = run_as::<i8>(&GatherNd { batch_dims: 0 }, &[&x, &i], &[2]);
        assert_eq!(y, [3, 8]);
        let i = tensor::<i64>(&[3, 1], &[2, 1, 0]);
        let y = run_as::<i8>(&GatherNd { batch_dims: 1 }, &[&x, &i], &[3]);
        assert_eq!(y, [3, 5, 7]);
    }

    /// Data that was widened from half precision gives the same rows as it does in `float32`.
    #[test]
    fn rows_are_widened() {
        let bits: Vec<u16> = (0..2 * 7 * 5).map(|i| 0x3c00 + 13 * i).collect();
        let indices = tensor(&[3], &[6i64, -7, 2]);
        for dtype in [DType::F16, DType::BF16] {
            let halves = tensor(&[2, 7, 5], &bits).reinterpreted(dtype).unwrap();
            let data = halves.widened().unwrap();
            assert_eq!(data.narrow(), Some(halves));
            let plain = tensor(&[2, 7, 5], data.as_slice::<f32>().unwrap());
            assert_eq!(plain.narrow(), None);
            let rows = |data| run_f32(&Gather { axis: 1 }, &[data, &indices], &[2, 3, 5]);
            assert_eq!(rows(&data), rows(&plain));
        }
    }
}
