//! Norms that the products behind them take along.

use std::sync::Arc;

use kilim_core::backend::Backend;
use kilim_core::ops::{Activation, Binary, BinaryKind, Fact, MatMulNBits, RmsNorm};
use kilim_core::{DType, Dim, Graph, RunOptions, Session, SessionOptions, Shape, Tensor, ValueId};

use super::harness::*;
use crate::WgpuBackend;
use crate::device::gpu::Gpu;
use crate::device::selection::Selection;

/// What becomes of the sum in front of the norm, and of the norm.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Behind {
    /// The sum is added to the last product: it lasts.
    Residual,
    /// The norm alone reads the sum.
    Nothing,
    /// The norm is an output, too.
    Shown,
}

/// `(silu(a) * b) c` of the products a and b of the norm of `x * x`, whose rows have `k` numbers.
fn block(k: usize, zeros: bool, behind: Behind) -> Graph {
    let mut g = Graph::new("block");
    let shape = Shape(vec![Dim::Symbol("rows".into()), Dim::Known(k)]);
    let x = g.add_input("x", Fact::new(DType::F32, shape));
    let square = g.apply("square", Binary::new(BinaryKind::Mul), &[x, x]);
    let weight = g.add_constant("weight", random(&[k], 1));
    let norm = RmsNorm {
        axis: -1,
        epsilon: 1e-3,
    };
    let norm = g.apply("norm", norm, &[square, weight]);
    let mut product = |name: &str, n, k, input, activation, others: [Option<ValueId>; 2]| {
        let op = MatMulNBits {
            k,
            n,
            bits: 4,
            block: 16,
            int8: false,
            activation,
        };
        let [blocks, size, zero_bytes] = op.row().unwrap();
        let seed = name.len() as u32;
        let b = g.add_constant(format!("{name}.b"), packed_bytes(&[n, blocks, size], seed));
        let scales = g.add_constant(format!("{name}.scales"), random(&[n, blocks], seed + 1));
        let zeros = zeros.then(|| {
            g.add_constant(
                format!("{name}.zeros"),
                packed_bytes(&[n * zero_bytes], seed + 2),
            )
        });
        let [residual, factor] = others;
        let inputs = [
            Some(input),
            Some(b),
            Some(scales),
            zeros,
            None,
            None,
            residual,
            factor,
        ];
        g.apply_shared(name.into(), Arc::new(op), &inputs)
    };
    let up = product("up", 24, k, norm, Activation::None, [None, None]);
    let gate = product("gate", 24, k, norm, Activation::Silu, [None, Some(up)]);
    let residual = (behind == Behind::Residual).then_some(square);
    let y = product("down", k, 24, gate, Activation::None, [residual, None]);
    g.outputs.push(y);
    if behind == Behind::Shown {
        g.outputs.push(norm);
    }
    g
}

fn open(graph: Graph, backend: Arc<dyn Backend>) -> Session {
    let evaluator = Arc::new(kilim_simd_cpu::backend());
    let options = SessionOptions {
        strict: true,
        ..SessionOptions::default()
    };
    let session = Session::new(graph, vec![backend], evaluator, options);
    pollster::block_on(session).unwrap()
}

fn run(session: &mut Session, x: &Tensor) -> Vec<Tensor> {
    let outputs =
        pollster::block_on(session.run(&[("x", x.clone())], &RunOptions::default())).unwrap();
    outputs.into_iter().map(|(_, tensor)| tensor).collect()
}

#[test]
fn a_row_is_normalised_by_its_products() {
    let gpu = match pollster::block_on(Gpu::open(&Selection::default())) {
        Ok(gpu) => Arc::new(WgpuBackend::on(gpu, true)),
        Err(e) => return kilim_test_support::skip(e),
    };
    for (behind, launches) in [
        (Behind::Residual, 4),
        (Behind::Nothing, 5),
        (Behind::Shown, 5),
    ] {
        for (k, zeros) in [(64, true), (37, false)] {
            let mut own = open(block(k, zeros, behind), gpu.clone());
            let mut cpu = open(block(k, zeros, behind), Arc::new(kilim_simd_cpu::backend()));
            // One plan is changed for other lengths, and back.
            for rows in [1, 3, 1, 40] {
                let x = random(&[rows, k], rows as u32);
                let want = run(&mut cpu, &x);
                for (got, want) in run(&mut own, &x).iter().zip(&want) {
                    let want: Vec<f64> = want.to_f64s().unwrap();
                    let most = want.iter().fold(1.0f64, |most, v| most.max(v.abs()));
                    close(got, &want, 1e-6 * most);
                }
                if rows == 1 {
                    let report = own.report();
                    let on_gpu = report.backends.iter().map(|b| b.launches).sum::<usize>();
                    assert_eq!(on_gpu, launches, "{behind:?}, rows of {k}");
                }
            }
        }
    }
}
