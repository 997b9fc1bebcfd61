//! Nodes that have no case, or none that shows what is asked here.

use std::sync::Arc;

use super::*;

/// A name, an operator and its inputs.
type Other = (String, Arc<dyn Operator>, Vec<Option<Tensor>>);

pub fn others() -> Vec<Other> {
    let mut random = Random(3);
    let mut all = spatial(&mut random);
    all.extend(by_place(&mut random));
    all.extend(passing(&mut random));
    all.extend(writing(&mut random));
    all.extend(showing(&mut random));
    let named = |(op, inputs): (Arc<dyn Operator>, _)| (op.name().to_string(), op, inputs);
    all.into_iter().map(named).collect()
}

type Unnamed = (Arc<dyn Operator>, Vec<Option<Tensor>>);

/// Operators on data with channels, and a product.
fn spatial(random: &mut Random) -> Vec<Unnamed> {
    let mut floats = |shape: &[usize]| Some(random.floats(shape));
    let transposed = ConvTranspose {
        strides: vec![2, 1],
        dilations: vec![1, 1],
        padding: Padding::Valid,
        output_padding: Vec::new(),
        output_shape: None,
        groups: 1,
        channels_last: false,
        activation: Activation::None,
    };
    let gemm = Gemm {
        alpha: 0.5,
        beta: 1.0,
        transpose_a: false,
        transpose_b: true,
        activation: Activation::None,
    };
    let lrn = Lrn {
        alpha: 0.1,
        beta: 0.75,
        bias: 1.0,
        size: 3,
        channels_last: false,
    };
    let lp = LpPool {
        window: Window {
            kernel: vec![2, 3],
            strides: vec![2, 1],
            dilations: vec![1, 1],
            padding: Padding::Valid,
            ceil_mode: false,
        },
        p: 2,
        channels_last: false,
    };
    let depth = DepthToSpace {
        block: 2,
        crd: false,
        channels_last: false,
    };
    let space = SpaceToDepth {
        block: 2,
        channels_last: false,
    };
    let image = [2, 4, 4, 6];
    let weights = [floats(&[4, 3, 2, 2]), floats(&[3])];
    vec![
        (
            Arc::new(transposed),
            [floats(&image)].into_iter().chain(weights).collect(),
        ),
        (
            Arc::new(gemm),
            vec![floats(&[3, 4]), floats(&[5, 4]), floats(&[5])],
        ),
        (Arc::new(lrn), vec![floats(&image)]),
        (Arc::new(lp), vec![floats(&image)]),
        (Arc::new(depth), vec![floats(&image)]),
        (Arc::new(space), vec![floats(&image)]),
    ]
}

/// Nodes that write on their input.
fn writing(random: &mut Random) -> Vec<Unnamed> {
    let x = random.floats(&[3, 3]);
    let ints = |shape: &[usize], n: &[i64]| Some(Tensor::from_slice(shape, n).unwrap());
    let mut updates = |shape: &[usize]| Some(random.floats(shape));
    let mut cases: Vec<Unnamed> = Vec::new();
    for reduction in [
        ScatterReduction::None,
        ScatterReduction::Add,
        ScatterReduction::Max,
    ] {
        let places = ints(&[2, 3], &[0, 2, 1, 0, 1, 1]);
        let op = ScatterElements { axis: 0, reduction };
        cases.push((
            Arc::new(op),
            vec![Some(x.clone()), places, updates(&[2, 3])],
        ));
        let places = ints(&[2, 1], &[2, 0]);
        let op = ScatterNd { reduction };
        cases.push((
            Arc::new(op),
            vec![Some(x.clone()), places, updates(&[2, 3])],
        ));
    }
    for circular in [false, true] {
        let op = TensorScatter { axis: 1, circular };
        let places = ints(&[3], &[0, 2, 1]);
        cases.push((
            Arc::new(op),
            vec![Some(x.clone()), updates(&[3, 1]), places],
        ));
    }
    cases
}

/// Nodes that move no element of data with axes of length 1, or that do.
fn showing(random: &mut Random) -> Vec<Unnamed> {
    let x = random.floats(&[1, 3, 1, 2]);
    let ints = |n: &[i64]| Some(Tensor::from_slice(&[n.len()], n).unwrap());
    let mut cases: Vec<Unnamed> = Vec::new();
    let mut add = |op: Arc<dyn Operator>, rest: Vec<Option<Tensor>>| {
        let inputs = std::iter::once(Some(x.clone())).chain(rest);
        cases.push((op, inputs.collect()));
    };
    let perms = [[1, 2, 0, 3], [2, 1, 3, 0], [0, 3, 2, 1], [3, 2, 1, 0]];
    for perm in perms.map(Vec::from) {
        add(Arc::new(Transpose { perm }), Vec::new());
    }
    add(Arc::new(Transpose { perm: Vec::new() }), Vec::new());
    for shape in [&[1, 1, 3, 1, 2][..], &[1, 3, 4, 2]] {
        add(Arc::new(Expand), vec![ints(shape)]);
    }
    for times in [[1, 1, 1, 1], [1, 1, 2, 1]] {
        add(Arc::new(Tile), vec![ints(&times)]);
    }
    for (axis, step) in [(0, -1), (1, -1), (2, 2), (3, 1)] {
        let far = if step > 0 { [0, 9] } else { [-1, -9] };
        let cut = [far[0], far[1], axis, step].map(|n| ints(&[n]));
        add(Arc::new(Slice), cut.to_vec());
    }
    for (axis, at) in [(0, 0), (1, 0), (2, -1)] {
        add(Arc::new(Gather { axis }), vec![ints(&[at])]);
    }
    for rows in [0, 1] {
        let more = random.floats(&[1, rows, 1, 2]);
        add(Arc::new(Concat { axis: 1 }), vec![Some(more)]);
    }
    cases
}

/// Nodes that compute each place of some axes apart.
fn by_place(random: &mut Random) -> Vec<Unnamed> {
    let [x, y] = [0, 1].map(|_| Some(random.floats(&[2, 3, 4])));
    let norm = RmsNorm {
        axis: -1,
        epsilon: 1e-5,
    };
    let places = Tensor::from_bools(&[3, 1], &[true, false, true]).unwrap();
    vec![
        (Arc::new(norm), vec![x.clone(), Some(random.floats(&[4]))]),
        (Arc::new(Where), vec![Some(places), x, y]),
    ]
}

/// Nodes that give their input as it is, and others that only look so.
fn passing(random: &mut Random) -> Vec<Unnamed> {
    let x = random.floats(&[3, 3]);
    let ints = |n: &[i64]| Some(Tensor::from_slice(&[n.len()], n).unwrap());
    let mut cases: Vec<Unnamed> = Vec::new();
    let mut add = |op: Arc<dyn Operator>, rest: Vec<Option<Tensor>>| {
        let inputs = std::iter::once(Some(x.clone())).chain(rest);
        cases.push((op, inputs.collect()));
    };
    add(Arc::new(Dropout), Vec::new());
    add(Arc::new(Cast::new(DType::F32)), Vec::new());
    add(Arc::new(Concat { axis: 0 }), Vec::new());
    add(Arc::new(Split { axis: 0 }), Vec::new());
    for perm in [[0, 1], [1, 0]] {
        let perm = perm.to_vec();
        add(Arc::new(Transpose { perm }), Vec::new());
    }
    add(Arc::new(Tile), vec![ints(&[1, 1])]);
    add(Arc::new(Expand), vec![ints(&[1, 3])]);
    add(Arc::new(Slice), vec![ints(&[0]), ints(&[9]), ints(&[1])]);
    let row = random.floats(&[1, 3]);
    for at in [[0].as_slice(), &[-1], &[0, 0]] {
        let inputs = vec![Some(row.clone()), ints(at)];
        cases.push((Arc::new(Gather { axis: 0 }), inputs));
    }
    let mut add = |op: Arc<dyn Operator>, rest: Vec<Option<Tensor>>| {
        let inputs = std::iter::once(Some(x.clone())).chain(rest);
        cases.push((op, inputs.collect()));
    };
    // Backwards, the shape stays as well.
    let backwards = [[-1], [-9], [0], [-1]];
    add(Arc::new(Slice), backwards.map(|n| ints(&n)).to_vec());
    for pads in [[0, 0, 0, 0], [0, 1, 0, -1]] {
        let mode = PadMode::Constant;
        add(Arc::new(Pad { mode }), vec![ints(&pads)]);
    }
    for shape in [&[3, 3][..], &[9]] {
        let reshape = Reshape { allow_zero: false };
        add(Arc::new(reshape), vec![ints(shape)]);
    }
    use BinaryKind::{Add, Div, Mul, Pow};
    for kind in [Mul, Div, Pow, Add] {
        let one = Tensor::scalar(1f32).unwrap();
        add(Arc::new(Binary::new(kind)), vec![Some(one)]);
    }
    cases
}
