//! Attention: one dispatch for all heads, or a second that merges the parts of many keys.

use kilim_core::DType;
use kilim_core::ops::{Align, Attention};

use crate::kernels::Kernels;
use crate::kernels::elementwise::cast::widened;
use crate::lowering::walk::broadcast_strides;
use crate::lowering::{Lowering, Lowers, refuse};
use crate::shaders::products::attention::{Launch, Params, Passes, Tile};
use crate::shaders::products::attention_merge as merge;
use crate::shaders::{Operand, Stored, Target};

/// Keys of a block, and columns of a pass: `WIDE` of `products/attention.wgsl`.
const WIDE: usize = 32;
/// What the shader counts queries, keys and positions up to: `FAR` of `products/attention/rows.wgsl`.
const FAR: usize = 1 << 29;
/// No window reaches further, so that sums of positions fit into 64 bits.
const WITHOUT_BOUND: i64 = 1 << 62;
/// Keys that are worth a part of their own.
const FEW_KEYS: usize = 64;
/// Up to this many rows it is worth a measurement whether rows are done one by one.
const SOME_ROWS: usize = 32;

pub(crate) fn register(kernels: &mut Kernels) {
    kernels.add::<Attention>(attention);
}

impl Tile {
    /// Rows of a workgroup: `TM` of the shader.
    const fn rows(self) -> usize {
        match self {
            Tile::Flat => 8,
            Tile::Small => 32,
        }
    }
}

/// What the inputs have of everything. A key head's rows are the queries of all heads that read it.
#[derive(Clone, Copy)]
struct Sizes {
    batch: usize,
    heads: usize,
    key_heads: usize,
    queries: usize,
    keys: usize,
    size: usize,
    values: usize,
}

impl Sizes {
    fn of(l: &Lowering) -> Lowers<Sizes> {
        let (query, key, value) = (l.input(0)?, l.input(1)?, l.input(2)?);
        let ([batch, heads, queries, size], [_, key_heads, keys, _], [.., values]) =
            (&query.shape[..], &key.shape[..], &value.shape[..])
        else {
            return refuse("Attention takes four dimensions");
        };
        let sizes = Sizes {
            batch: *batch,
            heads: *heads,
            key_heads: *key_heads,
            queries: *queries,
            keys: *keys,
            size: *size,
            values: *values,
        };
        if sizes.queries >= FAR || sizes.keys >= FAR {
            return refuse("the shapes are too large for the GPU kernel");
        }
        Ok(sizes)
    }

    fn rows(&self) -> usize {
        (self.heads / self.key_heads.max(1)).saturating_mul(self.queries)
    }

    /// Matrices of keys.
    fn matrices(&self) -> usize {
        self.batch.saturating_mul(self.key_heads)
    }
}

/// How the work is cut up.
#[derive(Clone, Copy)]
struct Cut {
    tile: Tile,
    passes: Passes,
    /// Workgroups that share the columns of a row.
    slices: usize,
    /// Keys of a part, and how many parts there are.
    part: usize,
    parts: usize,
}

impl Cut {
    /// In parts where `busy` workgroups would otherwise not be there.
    fn new(s: &Sizes, tile: Tile, busy: Option<usize>) -> Cut {
        let (passes, columns) = match s.values <= 2 * WIDE {
            true => (Passes::N2, 2 * WIDE),
            false => (Passes::N4, 4 * WIDE),
        };
        let slices = s.values.div_ceil(columns);
        let groups = [s.rows().div_ceil(tile.rows()), slices, s.matrices()]
            .into_iter()
            .fold(1, usize::saturating_mul);
        let wanted = busy.map_or(1, |busy| {
            (busy / groups.max(1)).clamp(1, (s.keys / FEW_KEYS).max(1))
        });
        let part = s.keys.div_ceil(wanted).max(1).next_multiple_of(WIDE);
        Cut {
            tile,
            passes,
            slices,
            part,
            parts: s.keys.div_ceil(part).max(1),
        }
    }

    /// The cut that is expected to be the fastest, or another one that was measured to be.
    fn choose(s: &Sizes, stored: Stored, l: &mut Lowering) -> Cut {
        let rows = s.rows();
        let tiles = [
            ("flat tiles", "flat tiles, keys in parts", Tile::Flat),
            ("small tiles", "small tiles, keys in parts", Tile::Small),
        ];
        let mut kernels = Vec::new();
        for (whole, parts, tile) in tiles {
            let expected = (rows <= Tile::Flat.rows()) == (tile == Tile::Flat);
            if !expected && (rows > SOME_ROWS || rows <= Tile::Flat.rows()) {
                continue;
            }
            let mut own = vec![(whole, Cut::new(s, tile, None))];
            let cut = Cut::new(s, tile, Some(l.caps.busy));
            // A device that is a CPU has few cores, and they are busy already.
            if cut.parts > 1 && !l.caps.software {
                own.insert(0, (parts, cut));
            }
            let at = if expected { 0 } else { kernels.len() };
            kernels.splice(at..at, own);
        }
        let (heads, stored) = (s.matrices(), stored.name());
        // One measurement for many lengths of a cache that grows.
        let keys = s.keys.next_power_of_two();
        let class = format!(
            "attention of {stored}, {heads} times {rows}x{} to {keys}x{}",
            s.size, s.values
        );
        l.choose(class, &kernels)
    }
}

/// Strides of the bias, in the order of the dimensions of the scores.
fn bias_steps(s: &Sizes, l: &Lowering) -> Lowers<[usize; 4]> {
    let Some(bias) = l.optional(3) else {
        return Ok([0; 4]);
    };
    let scores = [s.batch, s.heads, s.queries, s.keys];
    match broadcast_strides(&bias.shape, &scores)?[..] {
        [batch, head, query, key] => Ok([batch, head, query, key]),
        _ => refuse("the bias has other dimensions than the scores"),
    }
}

/// A number of 64 bits, the low word first.
fn words(n: i64) -> [u32; 2] {
    [n as u32, (n >> 32) as u32]
}

/// The first key that query 0 sees, and the one behind its last, without the offset of input 4.
fn window(op: &Attention, s: &Sizes) -> [i64; 2] {
    let reach = |n: i64| match n {
        0.. => n.min(WITHOUT_BOUND),
        _ => WITHOUT_BOUND,
    };
    let position = match op.align {
        Align::Start => 0,
        Align::End => s.keys as i64 - s.queries as i64,
    };
    let ahead = if op.causal { 0 } else { reach(op.right) };
    [position - reach(op.left), position + ahead + 1]
}

fn attention(op: &Attention, l: &mut Lowering) -> Lowers {
    let steps = l.input(1)?.dtype == DType::I8;
    let stored = match steps {
        true => l.float_of([0, 3, 6])?,
        false => l.float_of([0, 1, 2, 3, 6])?,
    };
    if steps && !matches!(stored, Stored::F32) {
        return refuse("keys and values of int8 beside queries of float16 are not on the GPU");
    }
    l.want(4, DType::I64)?;
    l.want(5, DType::I64)?;
    let s = Sizes::of(l)?;
    if op.softcap.is_some_and(|cap| cap == 0.0 || !cap.is_finite()) {
        return refuse("the GPU kernel takes caps of scores that are numbers other than zero");
    }
    let [bias_batch, bias_head, bias_query, bias_key] = bias_steps(&s, l)?;
    let cut = Cut::choose(&s, stored, l);
    let given = |i: usize| l.optional(i).map(|_| Operand::Input(i));
    let (bias, offset, lengths, sinks) = (given(3), given(4), given(5), given(6));
    let each = l.optional(4).is_some_and(|spec| spec.elements() > 1);
    let [first, end] = window(op, &s).map(words);
    // Without keys there is no sum, and the output is zero.
    let zeros = op.zeros || s.keys == 0;
    let count = l.output(0)?.elements();
    let merged = cut.parts > 1;
    let y = match merged {
        true => {
            let rows = s.matrices().saturating_mul(s.rows());
            let each = s.values.saturating_add(2).saturating_mul(size_of::<f32>());
            l.scratch(rows.saturating_mul(cut.parts).saturating_mul(each))
        }
        false => Target::Output(0),
    };
    let [key, value] = match steps {
        true => {
            let counts = [l.input(1)?.elements(), l.input(2)?.elements()];
            let key = widened(DType::I8, Operand::Input(1), counts[0], l)?;
            [key, widened(DType::I8, Operand::Input(2), counts[1], l)?]
        }
        false => [Operand::Input(1), Operand::Input(2)],
    };
    let launch = Launch {
        s: stored,
        tile: cut.tile,
        passes: cut.passes,
        whole: s.size.is_multiple_of(4) && s.values.is_multiple_of(4),
        parts: merged,
        query: Operand::Input(0),
        key,
        value,
        bias,
        offset,
        lengths,
        sinks,
        y,
        params: Params {
            rows: s.rows(),
            queries: s.queries,
            keys: s.keys,
            size: s.size,
            values: s.values,
            key_heads: s.key_heads,
            part: cut.part,
            parts: cut.parts,
            slices: cut.slices,
            bias_batch,
            bias_head,
            bias_query,
            bias_key,
            offset_step: each.into(),
            zeros: zeros.into(),
            scale: op.scale,
            softcap: op.softcap.map_or(0.0, f32::abs),
            first,
            end,
        },
    };
    let tiles = s.rows().div_ceil(cut.tile.rows());
    let shares = cut.slices.saturating_mul(cut.parts);
    l.dispatch(launch, [tiles, shares, s.matrices()]);
    if merged {
        let launch = merge::Launch {
            s: stored,
            x: y.into(),
            y: Target::Output(0),
            params: merge::Params {
                count,
                values: s.values,
                parts: cut.parts,
                zeros: zeros.into(),
            },
        };
        l.linear(launch, count);
    }
    Ok(())
}
