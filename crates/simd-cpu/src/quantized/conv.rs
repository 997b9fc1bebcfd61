//! Convolutions. Strips of the input are copied with their padding around them, and with the channels last, widened where
//! bytes are not multiplied; the sums of a strip become its output before the next strip's turn.

use std::sync::Arc;

use kilim_core::Result;
use kilim_core::backend::NodeSpec;
use kilim_core::error::unsupported;
use kilim_core::ops::{Conv, Requantize};
use kilim_core::tensor::AlignedBytes;

use super::bytewise::{Bytewise, form};
use super::depthwise::{self, Depthwise, Rows};
use super::finish::Finish;
use super::product::{Form, Panels, Product, Run, multiply};
use super::weights::{Columns, Order};
use super::{Data, Places, SLACK, Terms, is_narrow};
use crate::conv::Shape;
use crate::isa::Isa;
use crate::window::reach;
use kilim_host::{Build, CpuRun, Io, Kernel, PackKey, Scratch, Shared, Table};

/// Elements that a strip of the input, and its sums, may have to stay in the second-level cache.
const STRIP: usize = 48 * 1024;
/// Pixels that a strip should have at least.
const STRIP_PIXELS: usize = 64;

/// A convolution to build.
pub(super) struct Plan {
    shape: Shape,
    channels_last: bool,
    /// Terms with weights `[m, c / groups, taps]`.
    terms: Terms,
}

impl Plan {
    pub(super) fn of(
        op: &Conv,
        again: Option<&Requantize>,
        node: &NodeSpec,
        places: &Places,
    ) -> Option<Plan> {
        let (x, w) = (node.input(0)?, node.input(places.weights)?);
        let mut last = x.shape.clone();
        if !op.channels_last && last.len() > 2 {
            last[1..].rotate_left(1);
        }
        let turned = Conv {
            channels_last: true,
            ..op.clone()
        };
        let shape = Shape::new(&turned, &last, &w.shape)?;
        (is_narrow(x.dtype) && is_narrow(w.dtype)).then_some(())?;
        if let Some(zero) = node.input(places.weights_zero) {
            (zero.elements() == 1 || zero.elements() == shape.m).then_some(())?;
        }
        Some(Plan {
            shape,
            channels_last: op.channels_last,
            terms: places.terms(node, shape.m, Order::ChannelsFirst, op.activation, again)?,
        })
    }

    fn is_depthwise(&self) -> bool {
        let s = &self.shape;
        // A single channel has its taps in runs of rows, as dense ones have.
        s.groups > 1 && s.groups == s.m && s.groups == s.window.channels
    }

    /// The runs of a window of a group.
    fn runs(&self, build: &Build, width: usize) -> Result<Table<Run>> {
        let (y, x) = (self.shape.window.y, self.shape.window.x);
        let (all, c) = (self.shape.window.channels, self.shape.group_channels());
        let (along, len) = match x.dilation == 1 && c == all {
            true => (1, x.kernel * c),
            false => (x.kernel, c),
        };
        let run = |i: usize| Run {
            offset: (i / along * y.dilation * width + i % along * x.dilation) * all,
            len,
        };
        build.table((0..y.kernel * along).map(run), 4)
    }

    /// The weights of each group in panels, less `shift`.
    fn pack_dense(
        &self,
        cpu: &CpuRun,
        isa: Isa,
        form: Form,
        shift: i16,
        runs: &[Run],
    ) -> Result<AlignedBytes> {
        let (c, m, taps) = (
            self.shape.group_channels(),
            self.shape.group_outputs(),
            self.shape.taps(),
        );
        let mut room = Vec::new();
        let known = self.terms.weights.read(cpu, &mut room)?;
        let panels = Panels::new(isa, form, m);
        let size = panels.bytes(runs);
        let mut bytes = AlignedBytes::zeroed(size * self.shape.groups)?;
        let matrices = bytes.as_mut_slice().chunks_exact_mut(size.max(1));
        for (group, to) in matrices.enumerate() {
            let columns = Columns {
                known,
                first: group * m,
                count: m,
                shift,
            };
            let place = |k: usize| k % c * taps + k / c;
            panels.pack(cpu, isa, runs, &columns, place, to)?;
        }
        Ok(bytes)
    }
}

pub(super) fn kernel(
    plan: Option<Plan>,
    node: &NodeSpec,
    build: &mut Build,
    isa: Isa,
) -> Result<Box<dyn Kernel>> {
    let plan = plan.ok_or_else(|| unsupported("an integer convolution of this kind"))?;
    let w = plan.shape.window;
    let width = reach(&w.x);
    let runs = plan.runs(build, width)?;
    let whole = Bytewise::of(node, build, isa, &plan.terms, plan.shape.m)?;
    let (bytewise, depthwise) = match plan.is_depthwise() {
        true => {
            let (bytewise, parts) = whole.and_then(Bytewise::in_parts).unzip();
            let form = form(bytewise.as_ref());
            let depthwise = Depthwise::new(w, form, parts.unwrap_or(1), build)?;
            (bytewise, Some(depthwise))
        }
        false => (whole, None),
    };
    let form = form(bytewise.as_ref());
    let shift = bytewise.as_ref().map_or(0, |b| b.shift);
    let key = PackKey {
        kind: match &depthwise {
            Some(_) => "integer depthwise convolution",
            None => "integer convolution",
        },
        parameters: [
            isa.integer_sizes().0,
            plan.shape.groups,
            form.group(),
            plan.terms.weights.name(),
        ],
    };
    let packed = build.pack(node, plan.terms.place, key, |cpu| match &depthwise {
        Some(depthwise) => {
            let mut room = Vec::new();
            depthwise.pack(cpu, isa, &plan.terms.weights.read(cpu, &mut room)?)
        }
        None => plan.pack_dense(cpu, isa, form, shift, &runs),
    })?;
    let Terms {
        bias, data, finish, ..
    } = plan.terms;
    let mut bias = bias.unwrap_or_default();
    bias.resize(depthwise::width(isa, plan.shape.m), 0);
    let pixel = (width * w.y.stride * w.channels / w.x.output.max(1)).max(plan.shape.m);
    let rows = (STRIP / pixel.max(1))
        .max(STRIP_PIXELS)
        .div_ceil(w.x.output);
    let strips = w.y.output.div_ceil(rows.clamp(1, w.y.output));
    // As many for each thread.
    let even = (strips * w.batch).next_multiple_of(build.threads());
    let strips = even.div_ceil(w.batch.max(1)).clamp(1, w.y.output.max(1));
    let strip_rows = w.y.output.div_ceil(strips);
    let start = |pixel: usize| {
        let (y, x) = (pixel / w.x.output, pixel % w.x.output);
        ((y * w.y.stride * width + x * w.x.stride) * w.channels) as u32
    };
    let pixels = match depthwise {
        Some(_) => 0,
        None => strip_rows * w.x.output,
    };
    let starts = build.table((0..pixels).map(start), 4)?;
    let strips = w.y.output.div_ceil(strip_rows);
    Ok(Box::new(Convolution {
        isa,
        runs,
        starts,
        width,
        strip_rows,
        strips,
        depthwise,
        bytewise,
        packed,
        shape: plan.shape,
        channels_last: plan.channels_last,
        bias,
        data,
        finish,
    }))
}

/// How a strip is made of data.
struct Conversion<T, Many, One> {
    padding: T,
    /// For neighbours.
    many: Many,
    one: One,
}

struct Convolution {
    isa: Isa,
    shape: Shape,
    channels_last: bool,
    /// Filled up to whole vectors.
    bias: Vec<i32>,
    data: Data,
    finish: Finish,
    depthwise: Option<Depthwise>,
    bytewise: Option<Bytewise>,
    runs: Table<Run>,
    /// Where the window of each pixel of a strip begins, unless it is taken apart.
    starts: Table<u32>,
    /// Pixels of a row of a strip of the input.
    width: usize,
    /// Output rows of a strip.
    strip_rows: usize,
    strips: usize,
    packed: Arc<AlignedBytes>,
}

impl Convolution {
    /// Elements, in `i32`, of a strip of the input, of what is added to its columns and rows, of lines, and of its sums.
    fn sizes(&self) -> [usize; 5] {
        let w = &self.shape.window;
        let rows = (self.strip_rows - 1) * w.y.stride + w.y.extent();
        let input = (rows * self.width * w.channels + SLACK) * form(self.bytewise.as_ref()).size();
        let pixels = self.strip_rows * w.x.output;
        let [columns, rows] = match &self.bytewise {
            Some(bytewise) => [self.bias.len(), bytewise.row_biases(pixels)],
            None => [0, 0],
        };
        [
            input.div_ceil(size_of::<i32>()),
            columns,
            rows,
            self.depthwise.as_ref().map_or(0, Depthwise::room),
            pixels * self.shape.m,
        ]
    }

    /// Copies what output rows touch, `[first, rows]`, with what is around it.
    fn copy<T: Copy>(
        &self,
        cpu: &CpuRun,
        image: &[u8],
        [first, rows]: [usize; 2],
        by: Conversion<T, impl Fn(&[u8], &mut [T]), impl Fn(u8) -> T>,
        to: &mut [T],
    ) -> Result<()> {
        let w = &self.shape.window;
        let (c, plane) = (w.channels, w.y.input * w.x.input);
        let used = ((rows - 1) * w.y.stride + w.y.extent()) * self.width * c;
        let inside = w.x.input.min(self.width.saturating_sub(w.x.begin));
        let (used, slack) = to.split_at_mut(used);
        slack.fill(by.padding);
        for (i, row) in used.chunks_exact_mut(self.width * c).enumerate() {
            cpu.spend(self.width * c)?;
            let y = (first * w.y.stride + i).wrapping_sub(w.y.begin);
            if y >= w.y.input {
                row.fill(by.padding);
                continue;
            }
            let (left, rest) = row.split_at_mut((w.x.begin * c).min(self.width * c));
            let (middle, right) = rest.split_at_mut(inside * c);
            left.fill(by.padding);
            right.fill(by.padding);
            if self.channels_last || c == 1 {
                let from = &image[y * w.x.input * c..][..inside * c];
                (by.many)(from, middle);
                continue;
            }
            for channel in 0..c {
                let from = &image[channel * plane + y * w.x.input..][..inside];
                let to = middle[channel..].iter_mut().step_by(c);
                to.zip(from).for_each(|(to, &b)| *to = (by.one)(b));
            }
        }
        Ok(())
    }

    /// Copies what output rows touch, `[first, rows]`, in the form in which it is multiplied.
    fn strip(
        &self,
        cpu: &CpuRun,
        image: &[u8],
        rows: [usize; 2],
        zero: i16,
        to: &mut [i32],
    ) -> Result<()> {
        let (isa, data) = (self.isa, self.data);
        match &self.bytewise {
            Some(b) => {
                let by = Conversion {
                    padding: b.zero(zero),
                    many: |from: &[u8], to: &mut [u8]| b.copy(isa, from, to),
                    one: |x| b.byte(x),
                };
                self.copy(cpu, image, rows, by, bytemuck::cast_slice_mut(to))
            }
            None => {
                let by = Conversion {
                    padding: 0,
                    many: |from: &[u8], to: &mut [i16]| data.widen(isa, zero, from, to),
                    one: |x| data.number(x) - zero,
                };
                self.copy(cpu, image, rows, by, bytemuck::cast_slice_mut(to))
            }
        }
    }

    /// The sums of the pixels whose strip is `input`, with room for what is added to columns and rows, and for lines.
    fn sums(
        &self,
        cpu: &CpuRun,
        zero: i16,
        input: &[u8],
        [columns, row_bias, lines]: [&mut [i32]; 3],
        sums: &mut [i32],
    ) -> Result<()> {
        let (s, form) = (&self.shape, form(self.bytewise.as_ref()));
        let mut bias = self.bias.as_slice();
        if let Some(bytewise) = &self.bytewise {
            bytewise.column_bias(bias, zero, columns);
            bias = columns;
        }
        if let Some(depthwise) = &self.depthwise {
            let rows = Rows {
                input,
                weights: bytemuck::cast_slice(self.packed.as_slice()),
                bias,
                lines,
                sums,
            };
            return depthwise.compute(cpu, self.isa, rows);
        }
        let starts = &self.starts[..sums.len() / s.m];
        let last = starts.last().map_or(0, |&s| s as usize);
        // A tap of all groups takes all channels of its pixel.
        let reach = (self.runs.last()).map_or(0, |r| r.offset + r.len.max(s.window.channels));
        let room = input.len() / form.size();
        assert!(last + reach + SLACK / 2 <= room && sums.len() == starts.len() * s.m);
        let (c, m) = (s.group_channels(), s.group_outputs());
        let size = Panels::new(self.isa, form, m).bytes(&self.runs);
        let row_bias = match row_bias {
            [] => row_bias,
            all => &mut all[..starts.len()],
        };
        for group in 0..s.groups {
            let a = &input[group * c * form.size()..];
            if let Some(bytewise) = &self.bytewise {
                bytewise.row_bias(cpu, a, starts, &self.runs, row_bias)?;
            }
            let product = Product {
                form,
                a: a.as_ptr(),
                starts,
                runs: &self.runs,
                b: self.packed.as_slice()[group * size..][..size].as_ptr(),
                n: m,
                c: sums[group * m..].as_mut_ptr(),
                c_stride: s.m,
                bias: bias[group * m..][..m].as_ptr(),
                row_bias,
                real: None,
            };
            // SAFETY: the last run of the last pixel with the slack behind it is in the strip, as
            // was found above, for the last group too; weights and bias are there for `m` columns.
            unsafe { multiply(cpu, self.isa, &product)? };
        }
        Ok(())
    }

    /// Finishes the sums of output rows from `first` on, which are lost, and writes what becomes of them.
    fn store(&self, sums: &mut [i32], image: usize, first: usize, output: Shared<u8>) {
        let (w, m, size) = (&self.shape.window, self.shape.m, self.finish.size());
        let plane = w.y.output * w.x.output;
        let (pixels, before) = (sums.len() / m, first * w.x.output);
        if self.channels_last || m == 1 {
            let at = (image * plane + before) * m * size;
            // SAFETY: strips are disjoint, and each is computed once.
            let to = unsafe { output.part(at, sums.len() * size) };
            return match size {
                1 => self.finish.bytes(self.isa, m, sums, to),
                _ => put(to, size, sums.iter()),
            };
        }
        self.finish.apply(self.isa, m, sums);
        for channel in 0..m {
            let at = ((image * m + channel) * plane + before) * size;
            // SAFETY: strips are disjoint, and each is computed once; the rows of a strip are in one piece in each
            // plane.
            let to = unsafe { output.part(at, pixels * size) };
            put(to, size, sums[channel..].iter().step_by(m));
        }
    }
}

/// Writes finished sums as numbers of `size` bytes, which have their lower ones.
fn put<'a>(to: &mut [u8], size: usize, sums: impl Iterator<Item = &'a i32>) {
    if size == 1 {
        return to
            .iter_mut()
            .zip(sums)
            .for_each(|(to, &sum)| *to = sum as u8);
    }
    let to: &mut [i32] = bytemuck::cast_slice_mut(to);
    to.iter_mut().zip(sums).for_each(|(to, &sum)| *to = sum);
}

impl Kernel for Convolution {
    fn run(&self, io: &mut Io) -> Result<()> {
        let sizes = self.sizes();
        let w = &self.shape.window;
        let (x, zero) = (io.input_bytes(0), self.data.zero(io));
        let output = Shared::new(io.output_bytes(0));
        let scratch = io.thread_scratch::<i32>(sizes.iter().sum());
        let strips = self.strips * w.batch;
        let depth = match &self.depthwise {
            Some(depthwise) => depthwise.depth(),
            None => self.runs.iter().map(|r| r.len).sum(),
        };
        let sums = self.strip_rows * w.x.output * self.shape.m;
        // What becomes of a vector of sums takes two operations.
        let cost = self.isa.cost(sums.saturating_mul(depth)) + 2 * sums / self.isa.lanes();
        io.cpu()
            .rows_with(strips, (), scratch, cost, |piece, (), scratch, cpu| {
                let (strip, rest) = scratch.split_at_mut(sizes[0]);
                let (columns, rest) = rest.split_at_mut(sizes[1]);
                let (row_bias, rest) = rest.split_at_mut(sizes[2]);
                let (lines, sums) = rest.split_at_mut(sizes[3]);
                for index in piece {
                    let (image, first) =
                        (index / self.strips, index % self.strips * self.strip_rows);
                    let rows = self.strip_rows.min(w.y.output - first);
                    let sums = &mut sums[..rows * w.x.output * self.shape.m];
                    let from = &x[image * w.image()..][..w.image()];
                    self.strip(cpu, from, [first, rows], zero, strip)?;
                    let input = bytemuck::cast_slice(strip);
                    let room = [&mut *columns, &mut *row_bias, &mut *lines];
                    self.sums(cpu, zero, input, room, sums)?;
                    cpu.spend(4 * sums.len())?;
                    self.store(sums, image, first, output);
                }
                Ok(())
            })
    }

    fn scratch(&self) -> Scratch {
        let sizes = self.sizes();
        let all = sizes
            .iter()
            .fold(0usize, |sum, &size| sum.saturating_add(size));
        Scratch::on_each_thread::<i32>(all)
    }
}
