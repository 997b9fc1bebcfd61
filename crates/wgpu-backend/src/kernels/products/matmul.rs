//! Matrix products: one form for MatMul, Gemm and whatever else comes down to a product.

use kilim_core::ops::{Activation, Gemm, MatMul, MatMulGeometry};

use super::tile::{Cut, Extent};
use crate::kernels::Kernels;
use crate::lowering::walk::{both, broadcast_steps, broadcast_strides, strides};
use crate::lowering::{Lowering, Lowers, PackKind, ok, refuse};
use crate::shaders::products::matmul::{self, Case, MatrixReadA};
use crate::shaders::products::matvec;
use crate::shaders::{self, Im2col, Operand, Parted, ReadB, Stored, Target};

/// Up to this many rows a product is expected to be the fastest row by row.
const FEW_ROWS: usize = 4;
/// Below so many columns of a, parts of a product's few workgroups are not worth a launch.
const FEW_PARTS: usize = 384;
/// Up to this many rows that is worth a measurement.
const SOME_ROWS: usize = 16;

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
    pub walk_a: Vec<i64>,
    pub walk_b: Vec<i64>,
    pub a: Operand,
    pub a_strides: [usize; 2],
    pub b: Operand,
    pub b_strides: [usize; 2],
    pub c: Target,
    pub bias: Option<Bias>,
    /// A tensor of the output's shape that is added.
    pub residual: Option<Operand>,
    pub alpha: f32,
    pub activation: Activation,
    /// The element type of all operands.
    pub stored: Stored,
}

impl ReadB {
    /// The columns of a workgroup, as `products/matvec.wgsl` says.
    pub(super) fn columns(self) -> usize {
        match self {
            ReadB::N4 => 64,
            ReadB::K4 => 4,
            ReadB::Strided => 16,
        }
    }
}

impl Product {
    /// Adds the dispatch of the kernel that suits strides and sizes.
    pub fn emit(self, l: &mut Lowering) -> Lowers {
        let batch: usize = self.batch.iter().product();
        match self.cut(batch, l) {
            Some(cut) => self.tiled(cut, batch, l),
            None => self.row_by_row(batch, l),
        }
        Ok(())
    }

    /// Whether a can be read four at once along k.
    fn quads_of_a(&self) -> bool {
        self.a_strides[1] == 1
            && self.k.is_multiple_of(4)
            && self.a_strides[0].is_multiple_of(4)
            && whole(&self.walk_a)
    }

    /// How b is read; `along_k` says whether four at once along k may be.
    fn read_b(&self, along_k: bool) -> ReadB {
        let [row, column] = self.b_strides;
        // The last quad of a row must lie within it.
        let quads = self.n.is_multiple_of(4) || row >= self.n;
        let whole = whole(&self.walk_b);
        if column == 1 && row.is_multiple_of(4) && quads && whole {
            return ReadB::N4;
        }
        let k4 = row == 1 && self.k.is_multiple_of(4) && column.is_multiple_of(4) && whole;
        match k4 && along_k {
            true => ReadB::K4,
            false => ReadB::Strided,
        }
    }

    /// Sizes and strides.
    fn params(&self) -> shaders::Product {
        let none = (0, 0, 0, 0.0);
        let bias = self.bias.as_ref();
        let (bias_row, bias_col, bias_batch, beta) =
            bias.map_or(none, |b| (b.row, b.column, b.batch, b.beta));
        shaders::Product {
            m: self.m,
            n: self.n,
            k: self.k,
            a_row: self.a_strides[0],
            a_col: self.a_strides[1],
            b_row: self.b_strides[0],
            b_col: self.b_strides[1],
            c_row: self.n,
            c_col: 1,
            c_batch: self.m.saturating_mul(self.n),
            bias_row,
            bias_col,
            bias_batch,
            alpha: self.alpha,
            beta,
        }
    }

    fn row_by_row(&self, batch: usize, l: &mut Lowering) {
        let read_b = self.read_b(self.quads_of_a());
        let columns = read_b.columns();
        let launch = matvec::Launch {
            s: self.stored,
            read_b,
            matrix: matvec::Matrix::Batch,
            a: self.a,
            b: self.b,
            c: self.c,
            bias: self.bias.as_ref().map(|b| b.operand),
            params: matvec::Params {
                sharing: 1,
                walk: both(&self.batch, &self.walk_a, &self.walk_b),
                act: (&self.activation).into(),
                product: self.params(),
            },
        };
        l.dispatch(launch, [self.n.div_ceil(columns), self.m, batch]);
    }

    fn extent(&self, batch: usize) -> Extent {
        Extent {
            m: self.m,
            k: self.k,
            n: self.n,
            batch,
        }
    }

    fn tiled(&self, cut: Cut, batch: usize, l: &mut Lowering) {
        let read_a = match self.quads_of_a() {
            true => MatrixReadA::K4,
            false => MatrixReadA::Strided,
        };
        let read_b = self.read_b(true);
        let launch = matmul::Launch {
            case: Case::Matrix { read_a, read_b },
            s: self.stored,
            tile: cut.tile,
            fetch: cut.fetch,
            c4: self.n.is_multiple_of(4),
            a: self.a,
            b: self.b,
            c: self.c,
            bias: self.bias.as_ref().map(|b| b.operand),
            residual: self.residual,
            params: matmul::Params {
                walk: both(&self.batch, &self.walk_a, &self.walk_b),
                act: (&self.activation).into(),
                product: self.params(),
                im2col: Im2col::default(),
                parted: Parted::default(),
            },
        };
        cut.emit(self.extent(batch), launch, l);
    }

    /// How it is cut up; `None` is row by row.
    fn cut(&self, batch: usize, l: &mut Lowering) -> Option<Cut> {
        let (m, k, n) = (self.m, self.k, self.n);
        let cuts = Cut::all(&l.caps, self.extent(batch));
        let mut kernels: Vec<_> = cuts.into_iter().map(|(name, c)| (name, Some(c))).collect();
        if m <= SOME_ROWS && self.residual.is_none() {
            let columns = self.read_b(self.quads_of_a()).columns();
            let groups = n.div_ceil(columns).saturating_mul(m * batch);
            let at = match m <= FEW_ROWS && (groups >= l.caps.busy / 8 || k < FEW_PARTS) {
                true => 0,
                false => kernels.len(),
            };
            kernels.insert(at, ("row by row", None));
        }
        let [a, b] = [self.a_strides[1], self.b_strides[1]].map(|s| if s == 1 { "" } else { "'" });
        let stored = self.stored.name();
        let class = format!("product of {stored}, {batch} times {m}x{k}{a} by {k}x{n}{b}");
        l.choose(class, &kernels)
    }
}

fn whole(steps: &[i64]) -> bool {
    steps.iter().all(|s| s % 4 == 0)
}

/// Rows of one product, and how the operands go on from one matrix to the next.
pub(crate) struct Batches {
    pub m: usize,
    pub batch: Vec<usize>,
    pub walk_a: Vec<i64>,
    pub walk_b: Vec<i64>,
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
        let scaled = |dims: &[usize], size: usize| -> Lowers<Vec<i64>> {
            let steps = broadcast_steps(dims, &g.batch)?;
            let size = i64::try_from(size).unwrap_or(i64::MAX);
            Ok(steps.into_iter().map(|s| s.saturating_mul(size)).collect())
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
    let g = ok(MatMulGeometry::new(&a.shape, &b.shape, op.transpose_b))?;
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
        c: Target::Output(0),
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
        c: Target::Output(0),
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
