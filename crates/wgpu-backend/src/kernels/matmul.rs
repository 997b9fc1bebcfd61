//! Matrix products: one form for MatMul, Gemm and whatever else comes down to a product.

use kilim_core::ops::{Activation, Gemm, MatMul, MatMulGeometry};

use super::Kernels;
use super::tile::Tile;
use crate::constants::PackKind;
use crate::lower::{Lowering, Lowers, Operand, refuse};
use crate::params::Params;
use crate::walk::{broadcast_strides, strides};

/// Up to this many rows a product is expected to be the fastest row by row.
const FEW_ROWS: usize = 4;
/// Up to this many rows that is worth a measurement.
const SOME_ROWS: usize = 16;

/// Modes of reading and fusing, as the shader's definitions.
pub(crate) const A_MODES: &[&str] = &["k4", "1"];
pub(crate) const B_MODES: &[&str] = &["n4", "k4", "1"];

pub(crate) fn register(kernels: &mut Kernels) {
    kernels.add::<MatMul>(matmul);
    kernels.add::<Gemm>(gemm);
}

/// An addend that broadcasts to the product by strides.
pub(crate) struct Bias {
    pub operand: Operand,
    pub row: usize,
    pub column: usize,
    pub batch: usize,
    pub beta: f32,
}

/// `activation(alpha * a b + bias + residual)`; strides count elements.
pub(crate) struct Product {
    pub m: usize,
    pub n: usize,
    pub k: usize,
    pub batch: Vec<usize>,
    pub walk_a: Vec<usize>,
    pub walk_b: Vec<usize>,
    pub a: Operand,
    pub a_strides: [usize; 2],
    pub b: Operand,
    pub b_strides: [usize; 2],
    pub c: Operand,
    pub bias: Option<Bias>,
    /// Of the output's shape.
    pub residual: Option<Operand>,
    pub alpha: f32,
    pub activation: Activation,
    /// The element type of all operands.
    pub stored: &'static str,
}

pub(crate) fn flag(on: bool) -> &'static str {
    if on { "1" } else { "0" }
}

impl Product {
    /// Adds the dispatch of the kernel that suits strides and sizes.
    pub fn emit(self, l: &mut Lowering) -> Lowers {
        let p = self;
        let whole = |v: &[usize]| v.iter().all(|s| s % 4 == 0);
        let a4 = p.a_strides[1] == 1
            && p.k.is_multiple_of(4)
            && p.a_strides[0].is_multiple_of(4)
            && whole(&p.walk_a);
        // The last quad of a row must lie within it.
        let quads = p.n.is_multiple_of(4) || p.b_strides[0] >= p.n;
        let n4 =
            p.b_strides[1] == 1 && p.b_strides[0].is_multiple_of(4) && quads && whole(&p.walk_b);
        let k4 = p.b_strides[0] == 1
            && p.k.is_multiple_of(4)
            && p.b_strides[1].is_multiple_of(4)
            && whole(&p.walk_b);
        let batch: usize = p.batch.iter().product();
        let tile = p.tile(batch, l);
        let few = tile.is_none();
        let b_mode = if n4 {
            "n4"
        } else if k4 && (a4 || !few) {
            "k4"
        } else {
            "1"
        };
        let (bias_row, bias_column, bias_batch, beta) = match &p.bias {
            Some(b) => (b.row, b.column, b.batch, b.beta),
            None => (0, 0, 0, 0.0),
        };
        let mut operands = vec![p.a, p.b, p.c];
        operands.extend(p.bias.as_ref().map(|b| b.operand));
        operands.extend(p.residual);
        let params = Params::new()
            .dims(&p.batch)
            .dims(&p.walk_a)
            .dims(&p.walk_b)
            .u(p.batch.len())
            .u(p.m)
            .u(p.n)
            .u(p.k)
            .u(p.a_strides[0])
            .u(p.a_strides[1])
            .u(p.b_strides[0])
            .u(p.b_strides[1])
            .u(p.n);
        // matvec.wgsl has no `c_col`.
        let params = match tile {
            Some(_) => params.u(1),
            None => params,
        };
        let params = params
            .u(p.m.saturating_mul(p.n))
            .u(bias_row)
            .u(bias_column)
            .u(bias_batch)
            .f(p.alpha)
            .f(beta)
            .activation(&p.activation);
        let bias = flag(p.bias.is_some());
        let Some(tile) = tile else {
            let columns = match b_mode {
                "n4" => 64,
                "k4" => 4,
                _ => 16,
            };
            l.dispatch(
                "matvec",
                &[("S", p.stored), ("B", b_mode), ("BIAS", bias)],
                &operands,
                params,
                [p.n.div_ceil(columns), p.m, batch],
            );
            return Ok(());
        };
        let [rows, width, depth] = tile.defines();
        l.dispatch(
            tile.shader,
            &[
                ("S", p.stored),
                ("A", if a4 { "k4" } else { "1" }),
                ("B", b_mode),
                ("C4", flag(p.n.is_multiple_of(4))),
                ("TILED", flag(!l.caps.software)),
                rows,
                width,
                depth,
                ("BIAS", bias),
                ("RESIDUAL", flag(p.residual.is_some())),
            ],
            &operands,
            params,
            tile.groups(p.m, p.n, batch),
        );
        Ok(())
    }

    /// How it is cut up; `None` is row by row.
    fn tile(&self, batch: usize, l: &mut Lowering) -> Option<Tile> {
        let (m, k, n) = (self.m, self.k, self.n);
        let tiles = Tile::all(&l.caps, m, n, batch);
        let mut kernels: Vec<_> = tiles.into_iter().map(|(name, t)| (name, Some(t))).collect();
        if m <= SOME_ROWS && self.residual.is_none() {
            let at = if m <= FEW_ROWS { 0 } else { kernels.len() };
            kernels.insert(at, ("row by row", None));
        }
        let [a, b] = [self.a_strides[1], self.b_strides[1]].map(|s| if s == 1 { "" } else { "'" });
        let stored = self.stored;
        let class = format!("product of {stored}, {batch} times {m}x{k}{a} by {k}x{n}{b}");
        l.choose(class, &kernels)
    }
}

/// Rows of one product, and how the operands go on from one matrix to the next.
pub(crate) struct Batches {
    pub m: usize,
    pub batch: Vec<usize>,
    pub walk_a: Vec<usize>,
    pub walk_b: Vec<usize>,
}

impl Batches {
    /// `matrix` is the size of a right operand as it is stored.
    pub fn new(g: &MatMulGeometry, matrix: usize) -> Lowers<Batches> {
        let count = |dims: &[usize]| dims.iter().product::<usize>();
        if count(&g.b_batch) == 1 && count(&g.a_batch) == count(&g.batch) {
            // One matrix for all: the batch is more rows.
            return Ok(Batches {
                m: g.m.saturating_mul(count(&g.batch)),
                batch: vec![1],
                walk_a: vec![0],
                walk_b: vec![0],
            });
        }
        let scaled = |dims: &[usize], size: usize| -> Lowers<Vec<usize>> {
            let s = broadcast_strides(dims, &g.batch)?;
            Ok(s.into_iter().map(|s| s.saturating_mul(size)).collect())
        };
        Ok(Batches {
            m: g.m,
            batch: g.batch.clone(),
            walk_a: scaled(&g.a_batch, g.m * g.k)?,
            walk_b: scaled(&g.b_batch, matrix)?,
        })
    }
}

/// Input 1 as the right operand: a constant matrix that is transposed, or whose rows are not whole
/// quads, is rearranged once.
fn right(
    l: &mut Lowering,
    i: usize,
    k: usize,
    n: usize,
    transposed: bool,
) -> (Operand, [usize; 2]) {
    let matrix = l.optional(i).is_some_and(|s| s.elements() == k * n);
    if l.is_known(i) && matrix && (transposed || !n.is_multiple_of(4)) {
        let (shape, perm) = if transposed {
            (vec![n, k], vec![1, 0])
        } else {
            (vec![k, n], vec![0, 1])
        };
        let wide = n.next_multiple_of(4);
        let kind = PackKind::Permute {
            shape,
            perm,
            padded: vec![k, wide],
        };
        return (l.pack(i, kind), [wide, 1]);
    }
    let strides = if transposed { [1, k] } else { [n, 1] };
    (Operand::Input(i), strides)
}

fn matmul(op: &MatMul, l: &mut Lowering) -> Lowers {
    let stored = l.float()?;
    let (a, b, y) = (l.input(0)?, l.input(1)?, l.output(0)?);
    let g = match MatMulGeometry::new(&a.shape, &b.shape, op.transpose_b) {
        Ok(g) => g,
        Err(e) => return refuse(e.message()),
    };
    let bias = match l.optional(2) {
        None => None,
        Some(bias) => {
            let wide = bias.shape.last().copied().unwrap_or(1);
            if bias.elements() != wide || (wide != g.n && wide != 1) {
                return refuse("a bias of more than one dimension is not on the GPU");
            }
            Some(Bias {
                operand: Operand::Input(2),
                row: 0,
                column: usize::from(wide == g.n && wide != 1),
                batch: 0,
                beta: 1.0,
            })
        }
    };
    let Batches {
        m,
        batch,
        walk_a,
        walk_b,
    } = Batches::new(&g, g.k * g.n)?;
    debug_assert_eq!(y.elements(), m * g.n * batch.iter().product::<usize>());
    let (b, b_strides) = right(l, 1, g.k, g.n, op.transpose_b);
    Product {
        m,
        n: g.n,
        k: g.k,
        batch,
        walk_a,
        walk_b,
        a: Operand::Input(0),
        a_strides: [g.k, 1],
        b,
        b_strides,
        c: Operand::Output(0),
        bias,
        residual: None,
        alpha: op.alpha.unwrap_or(1.0),
        activation: op.activation,
        stored,
    }
    .emit(l)
}

fn gemm(op: &Gemm, l: &mut Lowering) -> Lowers {
    let stored = l.float()?;
    let (a, b, y) = (l.input(0)?, l.input(1)?, l.output(0)?);
    let ([a0, a1], [b0, b1], [m, n]) = (pair(&a.shape)?, pair(&b.shape)?, pair(&y.shape)?);
    let k = if op.transpose_a { a0 } else { a1 };
    debug_assert_eq!(k, if op.transpose_b { b1 } else { b0 });
    let bias = match l.optional(2) {
        Some(c) if op.beta != 0.0 => {
            let s = broadcast_strides(&c.shape, &y.shape)?;
            Some(Bias {
                operand: Operand::Input(2),
                row: s[0],
                column: s[1],
                batch: 0,
                beta: op.beta,
            })
        }
        _ => None,
    };
    let (b, b_strides) = right(l, 1, k, n, op.transpose_b);
    let own = strides(&a.shape);
    Product {
        m,
        n,
        k,
        batch: vec![1],
        walk_a: vec![0],
        walk_b: vec![0],
        a: Operand::Input(0),
        a_strides: if op.transpose_a {
            [own[1], own[0]]
        } else {
            [own[0], own[1]]
        },
        b,
        b_strides,
        c: Operand::Output(0),
        bias,
        residual: None,
        alpha: op.alpha,
        activation: op.activation,
        stored,
    }
    .emit(l)
}

fn pair(shape: &[usize]) -> Lowers<[usize; 2]> {
    match *shape {
        [a, b] => Ok([a, b]),
        _ => refuse(format!("Gemm takes matrices, not {shape:?}")),
    }
}
