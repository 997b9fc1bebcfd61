//! Products of rows that each choose the matrix of an expert: route by route.

use kilim_core::DType;
use kilim_core::ops::{ExpertMatMul, ExpertMatMulNBits};

use super::packed::{case_of, read_unlisted, zeros_of};
use crate::kernels::Kernels;
use crate::kernels::index::within;
use crate::lowering::walk::both;
use crate::lowering::{Lowering, Lowers, ok, refuse};
use crate::shaders::products::{matvec, packed};
use crate::shaders::{Activation, MOST_GROUPS, Operand, Product, ReadB, Target, Weights};

pub(crate) fn register(kernels: &mut Kernels) {
    kernels.add::<ExpertMatMul>(plain);
    kernels.add::<ExpertMatMulNBits>(of_packed);
}

/// The routes of a node.
struct Routes {
    count: usize,
    /// Routes that begin with the same row.
    sharing: usize,
}

/// The routes of a node, which all lead to one of `experts`.
fn routes(l: &mut Lowering, experts: usize) -> Lowers<Routes> {
    let (a, routes) = (l.input(0)?, l.input(1)?);
    let ([_, of_a, _], [_, of_row]) = (&a.shape[..], &routes.shape[..]) else {
        return refuse("routes that are no matrix");
    };
    let sharing = if *of_a == 1 { (*of_row).max(1) } else { 1 };
    let count = routes.elements();
    if count > MOST_GROUPS {
        return refuse("more routes than a launch has workgroups");
    }
    within(l, 1, count, experts)?;
    Ok(Routes { count, sharing })
}

/// Sizes and strides of a product; a row of the bias is `n` numbers.
fn sizes(m: usize, n: usize, k: usize) -> Product {
    Product {
        m,
        n,
        k,
        a_row: k,
        a_col: 1,
        b_row: 1,
        b_col: k,
        c_row: n,
        c_col: 1,
        bias_col: 1,
        bias_batch: n,
        alpha: 1.0,
        beta: 1.0,
        ..Product::default()
    }
}

fn plain(_: &ExpertMatMul, l: &mut Lowering) -> Lowers {
    let stored = l.float_of([0, 2, 3])?;
    let [experts, n, k] = l.input(2)?.shape[..] else {
        return refuse("weights of experts that have other than three dimensions");
    };
    if u32::try_from(l.input(2)?.elements()).is_err() {
        return refuse("the weights are too many for the GPU kernel");
    }
    let routes = routes(l, experts)?;
    let read_b = match k.is_multiple_of(4) {
        true => ReadB::K4,
        false => ReadB::Strided,
    };
    let (matrices, step) = ([experts], [(n * k) as i64]);
    let launch = matvec::Launch {
        s: stored,
        read_b,
        matrix: matvec::Matrix::Listed {
            matrices: Operand::Input(1),
        },
        a: Operand::Input(0),
        b: Operand::Input(2),
        c: Target::Output(0),
        bias: l.optional(3).map(|_| Operand::Input(3)),
        params: matvec::Params {
            walk: both(&matrices, &[0], &step),
            act: Activation::default(),
            product: sizes(routes.count, n, k),
            sharing: routes.sharing,
        },
    };
    l.dispatch(launch, [n.div_ceil(read_b.columns()), routes.count, 1]);
    Ok(())
}

fn of_packed(op: &ExpertMatMulNBits, l: &mut Lowering) -> Lowers {
    let real_zeros = l.optional(4).is_some_and(|zeros| zeros.dtype != DType::U8);
    let stored = match real_zeros {
        true => l.float_of([0, 3, 4, 5])?,
        false => l.float_of([0, 3, 5])?,
    };
    let (n, k) = (op.n, op.k);
    let [blocks, _, zero_bytes] = ok(op.of_one().row())?;
    let of_one = n.saturating_mul(blocks);
    let experts = l.input(3)?.elements().checked_div(of_one).unwrap_or(0);
    let row = blocks.saturating_mul(op.block);
    if u32::try_from(experts.saturating_mul(n).saturating_mul(row)).is_err() {
        return refuse("the weights are too many for the GPU kernel");
    }
    let routes = routes(l, experts)?;
    let (zeros, zero_packing) = zeros_of(l, 4, op.bits);
    let (b, packing) = l.packed(2, op.bits);
    let tile = packed::Tile::Expert {
        experts: Operand::Input(1),
    };
    let launch = packed::Launch {
        case: case_of(k, n),
        s: stored,
        tile,
        read_b: read_unlisted(packing, op.block),
        zeros,
        a: Operand::Input(0),
        b,
        scales: Operand::Input(3),
        c: Target::Output(0),
        bias: l.optional(5).map(|_| Operand::Input(5)),
        residual: None,
        factor: None,
        weight: None,
        params: packed::Params {
            walk: both(&[1], &[0], &[0]),
            act: Activation::default(),
            product: sizes(routes.count, n, k),
            weights: Weights {
                blocks,
                block: op.block,
                row,
                zero_row: zero_bytes * (8 / op.bits),
                middle: f32::from(1u8 << (op.bits - 1)),
                epsilon: 0.0,
                sharing: routes.sharing,
            },
            packing,
            zero_packing,
        },
    };
    l.dispatch(launch, tile.groups(routes.count, n));
    Ok(())
}
