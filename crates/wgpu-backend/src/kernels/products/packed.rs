//! Products with packed weights.

use kilim_core::DType;
use kilim_core::ops::MatMulNBits;

use crate::kernels::Kernels;
use crate::kernels::index::within;
use crate::kernels::norm::normalise_rows;
use crate::lowering::walk::both;
use crate::lowering::{Caps, Lowering, Lowers, WEIGHT, ok, refuse};
use crate::shaders::products::packed::{Case, Launch, Params, ReadB, Tile, Zeros};
use crate::shaders::{MOST_GROUPS, Operand, Packing, Product, Target, Weights};

/// Up to this many rows a product is expected to be the fastest a few rows at a time.
const FEW_ROWS: usize = 4;
/// Up to this many rows that is worth a measurement.
const SOME_ROWS: usize = 16;

pub(crate) fn register(kernels: &mut Kernels) {
    kernels.add::<MatMulNBits>(matmul);
}

impl Tile {
    /// Rows and columns of a workgroup, as `products/packed/rows.wgsl` and `products/matmul/tiles.wgsl` say.
    const fn size(self) -> [usize; 2] {
        let [x, y, _] = self.workgroup();
        match self {
            Tile::Row | Tile::Expert { .. } => [1, 8],
            Tile::Few => [4, 8],
            Tile::Small | Tile::Large => [4 * y, 4 * x],
        }
    }

    /// The workgroups of a product.
    pub fn groups(self, m: usize, n: usize) -> [usize; 3] {
        let [rows, columns] = self.size();
        match self {
            Tile::Row | Tile::Few | Tile::Expert { .. } => {
                [n.div_ceil(columns), m.div_ceil(rows), 1]
            }
            Tile::Small | Tile::Large => [m.div_ceil(rows), n.div_ceil(columns), 1],
        }
    }

    /// The kernels that a device has for a product, the one that is expected to be the fastest first.
    fn all(caps: &Caps, m: usize, n: usize) -> Vec<(&'static str, Tile)> {
        let by_rows = match m {
            0 | 1 => ("row by row", Tile::Row),
            _ => ("four rows at a time", Tile::Few),
        };
        // On a device that is a CPU, barriers cost more than tiles save.
        if m <= 1 || caps.software {
            return vec![by_rows];
        }
        let tiles = [("small tiles", Tile::Small), ("large tiles", Tile::Large)];
        let large = m.div_ceil(64) * n.div_ceil(64) >= 128;
        let mut all = Vec::from(tiles);
        if large {
            all.reverse();
        }
        if m <= SOME_ROWS {
            let at = if m <= FEW_ROWS { 0 } else { all.len() };
            all.insert(at, by_rows);
        }
        let starts = |t: &Tile| t.groups(m, n).iter().all(|&g| g <= MOST_GROUPS);
        let (mut can, cannot): (Vec<_>, Vec<_>) = all.into_iter().partition(|(_, t)| starts(t));
        can.extend(cannot);
        can
    }
}

/// The zero points that input `i` may hold.
pub(super) fn zeros_of(l: &mut Lowering, i: usize, bits: usize) -> (Zeros, Packing) {
    match l.optional(i).map(|zeros| zeros.dtype) {
        None => (Zeros::None, Packing::default()),
        Some(DType::U8) => {
            let (zeros, packing) = l.packed(i, bits);
            (Zeros::Packed { zeros }, packing)
        }
        Some(_) => {
            let zeros = Operand::Input(i);
            (Zeros::Real { zeros }, Packing::default())
        }
    }
}

/// How numbers in blocks of neighbours are read.
pub(super) fn read_unlisted(packing: Packing, block: usize) -> ReadB {
    let in_word = 1 << packing.shift;
    match in_word >= 4 && block.is_multiple_of(in_word) {
        true => ReadB::Words,
        false => ReadB::Numbers,
    }
}

/// Whether rows of `k` and `n` numbers are read and written four at a time.
pub(super) fn case_of(k: usize, n: usize) -> Case {
    match k.is_multiple_of(4) && n.is_multiple_of(4) {
        true => Case::Quads,
        false => Case::Single,
    }
}

fn matmul(op: &MatMulNBits, l: &mut Lowering) -> Lowers {
    let real_zeros = l.optional(3).is_some_and(|zeros| zeros.dtype != DType::U8);
    let stored = match real_zeros {
        true => l.float_of([0, 2, 3, 5, 6, 7])?,
        false => l.float_of([0, 2, 5, 6, 7])?,
    };
    let [blocks, _, zero_bytes] = ok(op.row())?;
    let row = blocks.saturating_mul(op.block);
    if u32::try_from(op.n.saturating_mul(row)).is_err() {
        return refuse("the weights are too many for the GPU kernel");
    }
    let (m, n) = (l.input(0)?.elements() / op.k, op.n);
    let (zeros, zero_packing) = zeros_of(l, 3, op.bits);
    let (b, packing) = l.packed(1, op.bits);
    let read_b = if l.optional(4).is_some() {
        within(l, 4, op.k, blocks)?;
        let groups = Operand::Input(4);
        ReadB::Listed { groups }
    } else {
        read_unlisted(packing, op.block)
    };
    let class = format!(
        "product of {} with {} bits, {m}x{} by {}x{n}",
        stored.name(),
        op.bits,
        op.k,
        op.k
    );
    let tile = l.choose(class, &Tile::all(&l.caps, m, n));
    // In one row the norm is taken along, where there are bindings enough.
    let bound = (3..WEIGHT).filter(|i| l.optional(*i).is_some()).count() + 5;
    let (a, weight) = match l.norm {
        Some(_) if matches!(tile, Tile::Row) && bound <= l.caps.max_bindings => {
            (Operand::Input(0), Some(Operand::Input(WEIGHT)))
        }
        Some(epsilon) => (normalise_rows(WEIGHT, epsilon, l)?.into(), None),
        None => (Operand::Input(0), None),
    };
    let other = |i| l.optional(i).map(|_| Operand::Input(i));
    let launch = Launch {
        case: case_of(op.k, n),
        s: stored,
        tile,
        read_b,
        zeros,
        a,
        b,
        scales: Operand::Input(2),
        c: Target::Output(0),
        bias: other(5),
        residual: other(6),
        factor: other(7),
        weight,
        params: Params {
            walk: both(&[1], &[0], &[0]),
            act: (&op.activation).into(),
            product: Product {
                m,
                n,
                k: op.k,
                a_row: op.k,
                a_col: 1,
                c_row: n,
                c_col: 1,
                bias_col: 1,
                alpha: 1.0,
                beta: 1.0,
                ..Product::default()
            },
            weights: Weights {
                blocks,
                block: op.block,
                row,
                zero_row: zero_bytes * (8 / op.bits),
                middle: f32::from(1u8 << (op.bits - 1)),
                epsilon: l.norm.unwrap_or_default(),
                sharing: 1,
            },
            packing,
            zero_packing,
        },
    };
    l.dispatch(launch, tile.groups(m, n));
    Ok(())
}
