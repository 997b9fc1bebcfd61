//! Random graphs, with and without the passes.

use super::*;

/// One value of a random graph with its shape.
#[derive(Clone)]
struct Known {
    v: V,
    shape: Vec<usize>,
}

fn permutation(random: &mut Random, rank: usize) -> Vec<usize> {
    let mut perm: Vec<usize> = (0..rank).collect();
    for i in (1..rank).rev() {
        perm.swap(i, random.below(i + 1));
    }
    perm
}

/// A random operator on random values.
fn grow(b: &mut Builder, pool: &mut Vec<Known>) {
    let x = pool[b.random.below(pool.len())].clone();
    let rank = x.shape.len();
    let axis = b.random.below(rank.max(1));
    let mut shape = x.shape.clone();
    let v = match b.random.below(20) {
        0..=2 => {
            let perm = if b.random.below(2) == 0 && rank == 4 {
                [[0, 2, 3, 1], [0, 3, 1, 2]][b.random.below(2)].to_vec()
            } else {
                permutation(&mut b.random, rank)
            };
            shape = perm.iter().map(|&p| x.shape[p]).collect();
            b.transpose(x.v, &perm)
        }
        3 => b.unary(UnaryKind::Relu, x.v),
        4 => {
            // A constant that broadcasts along some axes.
            let from = b.random.below(rank + 1);
            let dims: Vec<usize> = x.shape[from..]
                .iter()
                .map(|&d| if b.random.below(2) == 0 { 1 } else { d })
                .collect();
            let c = b.floats(&dims);
            let kinds = [BinaryKind::Add, BinaryKind::Mul, BinaryKind::PRelu];
            let kind = kinds[b.random.below(3)];
            b.binary(kind, x.v, c)
        }
        5 | 6 => {
            let same: Vec<Known> = pool
                .iter()
                .filter(|k| k.shape == x.shape)
                .cloned()
                .collect();
            let other = same[b.random.below(same.len())].v;
            b.binary(BinaryKind::Add, x.v, other)
        }
        7 => {
            let same: Vec<Known> = pool
                .iter()
                .filter(|k| k.shape == x.shape)
                .cloned()
                .collect();
            let other = same[b.random.below(same.len())].v;
            shape[axis] *= 2;
            let axis = axis as i64;
            b.op(Concat { axis }, &[x.v, other])
        }
        8 if x.shape[axis] > 1 => {
            let (starts, ends) = (b.ints(&[1]), b.ints(&[i64::MAX]));
            let axes = b.ints(&[axis as i64]);
            shape[axis] -= 1;
            b.op(Slice, &[x.v, starts, ends, axes])
        }
        9 => {
            let mut pads = vec![0; 2 * rank];
            pads[axis] = 1;
            pads[rank + b.random.below(rank)] = 2;
            for (i, d) in shape.iter_mut().enumerate() {
                *d += (pads[i] + pads[rank + i]) as usize;
            }
            let pads = b.ints(&pads);
            let mode = PadMode::Constant;
            b.op(Pad { mode }, &[x.v, pads])
        }
        10 => {
            let kind = SoftmaxKind::Softmax;
            let axis = axis as i64 - rank as i64;
            b.op(
                Softmax {
                    kind,
                    axis,
                    beta: 1.0,
                },
                &[x.v],
            )
        }
        11 if rank > 2 => {
            let keep = b.random.below(2) == 0;
            let other = b.random.below(rank);
            let mut axes = vec![axis as i64];
            if other != axis {
                axes.push(other as i64 - rank as i64);
            }
            let gone = |i: usize| i == axis || i == other;
            shape = if keep {
                (0..rank)
                    .map(|i| if gone(i) { 1 } else { shape[i] })
                    .collect()
            } else {
                (0..rank).filter(|&i| !gone(i)).map(|i| shape[i]).collect()
            };
            b.mean(x.v, &axes, keep)
        }
        12 if rank < 6 && x.shape[axis].is_multiple_of(2) => {
            shape.splice(axis..=axis, [2, x.shape[axis] / 2]);
            let to: Vec<i64> = shape.iter().map(|&d| d as i64).collect();
            let to = b.ints(&to);
            b.op(Reshape { allow_zero: false }, &[x.v, to])
        }
        13 if rank > 2 && axis + 1 < rank => {
            shape.splice(axis..axis + 2, [x.shape[axis] * x.shape[axis + 1]]);
            let to: Vec<i64> = shape.iter().map(|&d| d as i64).collect();
            let to = b.ints(&to);
            b.op(Reshape { allow_zero: false }, &[x.v, to])
        }
        14 if rank < 6 => {
            shape.insert(axis, 1);
            let axes = b.ints(&[axis as i64]);
            b.op(Unsqueeze, &[x.v, axes])
        }
        15 if x.shape[axis] > 1 => {
            let first = b.random.below(x.shape[axis] - 1) + 1;
            let sizes = b.ints(&[first as i64, (x.shape[axis] - first) as i64]);
            let n = b.g.nodes.len();
            let outs: Vec<V> = (0..2)
                .map(|i| b.g.add_value(format!("split{n}:{i}"), Fact::default()))
                .collect();
            let inputs = [Some(x.v), Some(sizes)];
            let split = Split { axis: axis as i64 };
            b.g.push(format!("split{n}"), split, &inputs, &outs);
            let mut other = shape.clone();
            other[axis] -= first;
            pool.push(Known {
                v: outs[1],
                shape: other,
            });
            shape[axis] = first;
            outs[0]
        }
        16 | 17 if rank == 4 => {
            let (c, m) = (x.shape[1], b.random.below(3) + 1);
            shape[1] = m;
            b.conv(x.v, c, m, 1)
        }
        18 if rank > 1 => {
            let p: Vec<V> = (0..3).map(|_| b.floats(&[x.shape[1]])).collect();
            let ones = Tensor::from_slice(&[x.shape[1]], &vec![1.0f32; x.shape[1]]).unwrap();
            let variance = b.constant(ones);
            let norm = BatchNorm {
                epsilon: 1e-3,
                channels_last: false,
            };
            b.op(norm, &[x.v, p[0], p[1], p[2], variance])
        }
        19 => b.unary(UnaryKind::Neg, x.v),
        _ => b.unary(UnaryKind::Abs, x.v),
    };
    if shape.iter().product::<usize>() <= 4000 && !shape.is_empty() {
        pool.push(Known { v, shape });
    }
}

/// Elements that transposes move; a convolution in the file's layout may move its input, its output
/// and a residual that it adds.
fn moved(graph: &Graph) -> usize {
    let size = |v: V| {
        graph
            .value(v)
            .fact
            .concrete()
            .map_or(0, |s| s.iter().product())
    };
    let of = |n: &kilim::core::Node| -> usize {
        let conv = n.op.downcast_ref::<Conv>();
        if n.op.is::<Transpose>() {
            size(n.outputs[0])
        } else if conv.is_some_and(|c| !c.channels_last) {
            n.input(0).map_or(0, size) + 2 * size(n.outputs[0])
        } else {
            0
        }
    };
    graph.nodes.iter().map(of).sum()
}

#[test]
fn random_graphs() {
    let seeds = std::env::var("KILIM_SEEDS")
        .ok()
        .and_then(|s| s.parse().ok());
    for seed in 0..seeds.unwrap_or(150u64) {
        let mut b = Builder::new(seed + 100);
        let dims = [[1, 4, 3, 5], [2, 2, 4, 3], [1, 6, 1, 4]][b.random.below(3)];
        let x = b.input("x", &dims);
        let mut pool = vec![Known {
            v: x,
            shape: dims.to_vec(),
        }];
        for _ in 0..b.random.below(14) + 2 {
            grow(&mut b, &mut pool);
        }
        // What nothing reads, and one value from the middle.
        let uses = b.g.use_counts();
        let mut outputs: Vec<V> =
            b.g.nodes
                .iter()
                .flat_map(|n| n.outputs.clone())
                .filter(|v| uses[v.0] == 0)
                .collect();
        if let Some(node) = b.g.nodes.first() {
            outputs.push(node.outputs[0]);
        }
        outputs.dedup();
        let mut plain = b.g.clone();
        kilim::core::passes::infer_graph(&mut plain, &kilim::core::Interrupt::NEVER).unwrap();
        let g = b.check(&outputs, seed);
        let (before, after) = (moved(&plain), moved(&g));
        assert!(after <= before, "seed {seed}: {after} of {before}");
    }
}
