use super::*;
use crate::testing::run_kernel;
#[cfg(target_arch = "wasm32")]
use crate::testing::test;
use kilim_core::Tensor;
use kilim_host::testing::{noise, tensor};

/// Bytes of any bits.
fn bytes(count: usize, seed: usize) -> Vec<u8> {
    let mut state = seed as u32 * 2 + 1;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    (0..count).map(|_| next()).collect()
}

/// Number `at` of `bits` bits.
fn number(bytes: &[u8], bits: usize, at: usize) -> f64 {
    let bit = at * bits;
    f64::from((bytes[bit / 8] >> (bit % 8)) & (u8::MAX >> (8 - bits)))
}

#[derive(Clone, Copy)]
enum Points {
    Middle,
    Packed,
    Real,
}

/// What a kernel makes of a block of A: the nearest multiples of its 127th part; ties to even. These are
/// onnxruntime's steps, too: its products at accuracy level 4 are within 1e-7 of theirs, relative to the sums of magnitudes.
fn rounded(block: &[f32]) -> Vec<f64> {
    let largest = block
        .iter()
        .fold(0.0, |largest: f32, x| largest.max(x.abs()));
    let inverse = if largest == 0.0 { 0.0 } else { 127.0 / largest };
    let scale = f64::from(largest / 127.0);
    let steps = block.iter().map(|x| (x * inverse).round_ties_even());
    steps.map(|steps| f64::from(steps) * scale).collect()
}

fn check(op: &MatMulNBits, m: usize, points: Points, with_bias: bool) {
    let MatMulNBits {
        k,
        n,
        bits,
        block,
        int8,
        ..
    } = *op;
    let [blocks, size, zero_bytes] = op.row().expect("sizes that there are");
    let (a, bias) = (noise(m * k, 1), noise(n, 2));
    let packed = bytes(n * blocks * size, 3);
    let scales = noise(n * blocks, 4);
    let (zeros, real) = (bytes(n * zero_bytes, 5), noise(n * blocks, 6));
    let weight = |j: usize, p: usize| {
        let at = j * blocks + p / block;
        let zero = match points {
            Points::Middle => f64::from(1 << (bits - 1)),
            Points::Packed => number(&zeros[j * zero_bytes..], bits, p / block),
            Points::Real => real[at].into(),
        };
        let bytes = &packed[j * blocks * size..];
        (number(bytes, bits, p) - zero) * f64::from(scales[at])
    };
    // What a sum is rounded by depends on the magnitudes of what is summed.
    let (mut want, mut largest) = (Vec::new(), 1.0f64);
    for row in a.chunks(k) {
        let row: Vec<f64> = match int8 {
            true => row.chunks(block).flat_map(rounded).collect(),
            false => row.iter().map(|&a| a.into()).collect(),
        };
        for j in 0..n {
            let products = row.iter().enumerate();
            let products = products.map(|(p, &a)| a * weight(j, p));
            let bias = if with_bias { bias[j].into() } else { 0.0 };
            want.push(products.clone().sum::<f64>() + bias);
            largest = largest.max(products.map(f64::abs).sum());
        }
    }
    let u8s = |shape: &[usize], data: &[u8]| Tensor::from_slice(shape, data).expect("a tensor");
    let zeros = match points {
        Points::Middle => None,
        Points::Packed => Some(u8s(&[n, zero_bytes], &zeros)),
        Points::Real => Some(tensor(&[n, blocks], &real)),
    };
    let (a, packed) = (tensor(&[m, k], &a), u8s(&[n, blocks, size], &packed));
    let (scales, bias) = (tensor(&[n, blocks], &scales), tensor(&[n], &bias));
    let bias = with_bias.then_some(&bias);
    let inputs = [
        Some(&a),
        Some(&packed),
        Some(&scales),
        zeros.as_ref(),
        None,
        bias,
    ];
    for isa in Isa::available() {
        let got = run_kernel(op, &inputs, &[m, n], |node, _| kernel(op, node, isa));
        let worst = got
            .iter()
            .zip(&want)
            .map(|(&g, w)| (f64::from(g) - w).abs());
        let worst = worst.fold(0.0, f64::max);
        assert!(
            got.len() == want.len() && worst <= 5e-7 * largest,
            "{op:?} {m} {isa:?}: {worst}, sums of {largest}"
        );
    }
}

#[test]
fn products() {
    for bits in [2, 4, 8] {
        for (k, block) in [
            (64, 16),
            (33, 32),
            (300, 128),
            (5, 16),
            (512, 256),
            (1100, 16),
        ] {
            for (n, int8) in [1, 4, 7, 35]
                .into_iter()
                .flat_map(|n| [(n, false), (n, true)])
            {
                for m in [1, 3, 4, 13] {
                    let op = MatMulNBits {
                        k,
                        n,
                        bits,
                        block,
                        int8,
                        activation: Activation::None,
                    };
                    check(&op, m, Points::Middle, false);
                    check(&op, m, Points::Packed, true);
                    check(&op, m, Points::Real, n == 7);
                }
            }
        }
    }
}

/// Whether the kernel takes a node with an input of these sizes.
fn takes(op: &MatMulNBits, m: usize, listed: bool) -> bool {
    use kilim_core::backend::TensorSpec;
    let some = |dtype, shape: &[usize]| Some(TensorSpec::new(dtype, shape));
    let mut inputs = vec![some(DType::F32, &[m, op.k]), None, None, None];
    inputs.push(listed.then(|| TensorSpec::new(DType::I32, &[op.k])));
    let outputs = [TensorSpec::new(DType::F32, &[m, op.n])];
    let node = NodeSpec {
        name: "test",
        op,
        inputs: &inputs,
        outputs: &outputs,
    };
    Plan::of(op, &node).is_some()
}

#[test]
fn what_it_cannot_compute_is_left_to_others() {
    let op = |k, n, block| MatMulNBits {
        k,
        n,
        bits: 4,
        block,
        int8: false,
        activation: Activation::None,
    };
    assert!(takes(&op(40, 3, 16), 2, false));
    assert!(!takes(&op(40, 3, 16), 2, true));
    assert!(!takes(&op(40, 3, 8), 2, false));
    assert!(!takes(&op(40, 3, 16), 0, false));
    assert!(!takes(&op(40, 0, 16), 2, false));
    // The rest of the last block ends behind every address.
    assert!(!takes(
        &op(usize::MAX / 2 + 17, 3, usize::MAX / 2 + 1),
        0,
        false
    ));
}

fn product(op: &MatMulNBits, a: &[f32], isa: Isa) -> Vec<f32> {
    let (m, n) = (a.len() / op.k, op.n);
    let [blocks, size, _] = op.row().expect("sizes that there are");
    let shape = [n, blocks, size];
    let packed = bytes(n * blocks * size, 3);
    let packed = Tensor::from_slice(&shape, &packed).expect("a tensor");
    let scales = tensor(&[n, blocks], &noise(n * blocks, 4));
    let a = tensor(&[m, op.k], a);
    let inputs = [Some(&a), Some(&packed), Some(&scales), None, None, None];
    run_kernel(op, &inputs, &[m, n], |node, _| kernel(op, node, isa))
}

/// Rows are rounded one by one and the sums of a block are exact, so that a row gives the same alone and among others
/// but for the order in which its blocks are added. Blocks that hold no number, an infinite or only tiny ones stay so.
#[test]
fn rounded_rows_of_any_magnitude() {
    let op = MatMulNBits {
        k: 80,
        n: 37,
        bits: 4,
        block: 16,
        int8: true,
        activation: Activation::None,
    };
    for m in [1, 5] {
        for isa in Isa::available() {
            let mut a = noise(m * 80, 1);
            let usual = product(&op, &a, isa);
            a[17] = f32::NAN;
            assert!(product(&op, &a, isa)[..37].iter().all(|y| y.is_nan()));
            assert_eq!(product(&op, &a, isa)[37..], usual[37..], "{isa:?}");
            a[17] = f32::INFINITY;
            assert!(product(&op, &a, isa)[..37].iter().all(|y| !y.is_finite()));
            for magnitude in [0.0, f32::MIN_POSITIVE / 64.0, f32::MAX / 1e4] {
                a[..80].fill(magnitude);
                let got = product(&op, &a, isa);
                let most = f64::from(magnitude) * 80.0 * 8.0 * 2.0;
                assert!(
                    got[..37].iter().all(|&y| f64::from(y.abs()) <= most),
                    "{isa:?}"
                );
                assert_eq!(got[37..], usual[37..], "{isa:?}");
            }
        }
    }
}
