use kilim_core::ops::{
    AspectPolicy, BatchToSpace, Concat, ConstantOfShape, CoordinateMode, DepthToSpace, Expand,
    Gather, GatherCast, GatherElements, GatherNd, NearestMode, OneHot, Pad, PadMode, Reshape,
    Resize, ResizeMode, ScatterElements, ScatterNd, ScatterReduction, Slice, SpaceToBatch,
    SpaceToDepth, Split, Tile, Transpose, Trilu,
};
use kilim_core::{DType, Tensor};

use super::harness::*;

fn fed_random(shape: &[usize]) -> Given {
    Given::Fed(random(shape, 1))
}

/// Counts up, as `int64`.
fn longs(shape: &[usize]) -> Given {
    let data: Vec<i64> = (0..shape.iter().product::<usize>() as i64)
        .map(|i| i * 0x1_0000_0001 - 7)
        .collect();
    Given::Fed(Tensor::from_slice(shape, &data).unwrap())
}

fn truths(shape: &[usize]) -> Given {
    let data: Vec<bool> = (0..shape.iter().product::<usize>())
        .map(|i| i % 3 == 1)
        .collect();
    Given::Fed(Tensor::from_bools(shape, &data).unwrap())
}

#[test]
fn views_are_copied_where_they_must() {
    if gpu().is_none() {
        return;
    }
    for x in [
        fed_random(&[2, 3, 4]),
        longs(&[2, 3, 4]),
        truths(&[2, 3, 4]),
    ] {
        agree(Reshape { allow_zero: false }, &[x, i64s(&[4, -1])], 1, 0.0);
    }
}

#[test]
fn transposes() {
    if gpu().is_none() {
        return;
    }
    for (shape, perm) in [
        (vec![3, 5], vec![1, 0]),
        (vec![2, 3, 4, 5], vec![0, 2, 3, 1]),
        (vec![2, 3, 4, 8], vec![0, 2, 1, 3]),
        (vec![2, 3, 2, 3, 2, 3], vec![5, 3, 1, 0, 2, 4]),
        (vec![4, 1, 3], vec![]),
        (vec![0, 3], vec![1, 0]),
    ] {
        for x in [fed_random(&shape), longs(&shape), truths(&shape)] {
            agree(Transpose { perm: perm.clone() }, &[x], 1, 0.0);
        }
    }
}

#[test]
fn slices_expansions_and_tiles() {
    if gpu().is_none() {
        return;
    }
    type Case<'a> = (&'a [i64], &'a [i64], &'a [i64], &'a [i64]);
    let cases: [Case; 4] = [
        (&[1], &[-1], &[1], &[1]),
        (&[4, -1], &[0, -9], &[0, 2], &[-2, -1]),
        (&[0], &[4], &[2], &[1]),
        (&[2], &[2], &[0], &[1]),
    ];
    for (starts, ends, axes, steps) in cases {
        for x in [fed_random(&[5, 4, 8]), longs(&[5, 4, 8])] {
            let given = [x, i64s(starts), i64s(ends), i64s(axes), i64s(steps)];
            agree(Slice, &given, 1, 0.0);
        }
    }
    agree(Expand, &[fed_random(&[3, 1]), i64s(&[2, 1, 4])], 1, 0.0);
    agree(Expand, &[fed_random(&[2, 1, 8]), i64s(&[2, 3, 8])], 1, 0.0);
    agree(Tile, &[fed_random(&[2, 3]), i64s(&[2, 3])], 1, 0.0);
    agree(Tile, &[longs(&[2, 4]), i64s(&[3, 1])], 1, 0.0);
}

#[test]
fn joins_and_splits() {
    if gpu().is_none() {
        return;
    }
    for count in [1usize, 2, 3, 4, 5, 6, 7, 8, 15, 16] {
        for inner in [3, 4] {
            let inputs: Vec<Given> = (0..count)
                .map(|i| Given::Fed(random(&[2, 1 + i % 3, inner], i as u32)))
                .collect();
            let launches = agree(Concat { axis: -2 }, &inputs, 1, 0.0);
            assert_eq!(launches, count.div_ceil(7));
            let sizes: Vec<i64> = (0..count).map(|i| 1 + i as i64 % 3).collect();
            let total = sizes.iter().sum::<i64>() as usize;
            let given = [fed_random(&[2, total, inner]), i64s(&sizes)];
            agree(Split { axis: 1 }, &given, count, 0.0);
        }
    }
    agree(
        Concat { axis: 0 },
        &[longs(&[1, 3]), longs(&[0, 3]), longs(&[2, 3])],
        1,
        0.0,
    );
    agree(Split { axis: 0 }, &[longs(&[7, 2])], 3, 0.0);
    agree(
        Split { axis: 0 },
        &[fed_random(&[4, 2]), i64s(&[1, 0, 3])],
        3,
        0.0,
    );
}

#[test]
fn pads_of_all_modes() {
    if gpu().is_none() {
        return;
    }
    for mode in [
        PadMode::Constant,
        PadMode::Reflect,
        PadMode::Edge,
        PadMode::Wrap,
        PadMode::Symmetric,
    ] {
        for pads in [[1, 2, 0, 3], [0, 3, 2, 1], [-1, 2, 1, -2]] {
            let value = Given::Constant(Tensor::scalar(2.5f32).unwrap());
            agree(
                Pad { mode },
                &[fed_random(&[4, 5]), i64s(&pads), value],
                1,
                0.0,
            );
            agree(Pad { mode }, &[longs(&[4, 5]), i64s(&pads)], 1, 0.0);
        }
    }
}

#[test]
fn blocks_of_space() {
    if gpu().is_none() {
        return;
    }
    for channels_last in [false, true] {
        let (deep, wide) = if channels_last {
            ([2, 3, 2, 12], [2, 4, 6, 3])
        } else {
            ([2, 12, 3, 2], [2, 3, 4, 6])
        };
        for crd in [false, true] {
            let op = DepthToSpace {
                block: 2,
                crd,
                channels_last,
            };
            agree(op, &[fed_random(&deep)], 1, 0.0);
        }
        let op = SpaceToDepth {
            block: 2,
            channels_last,
        };
        agree(op, &[fed_random(&wide)], 1, 0.0);
    }
    let pads = |v: &[i64]| Given::Constant(Tensor::from_slice(&[2, 2], v).unwrap());
    for p in [[0, 0, 0, 0], [1, 2, 0, 1]] {
        let x = if p[0] == 0 {
            [2, 6, 4, 3]
        } else {
            [2, 3, 3, 3]
        };
        agree(
            SpaceToBatch,
            &[fed_random(&x), i64s(&[3, 2]), pads(&p)],
            1,
            0.0,
        );
        agree(
            BatchToSpace,
            &[fed_random(&[12, 2, 3, 3]), i64s(&[3, 2]), pads(&p)],
            1,
            0.0,
        );
    }
}

#[test]
fn triangles_and_constants() {
    if gpu().is_none() {
        return;
    }
    for upper in [false, true] {
        for k in [-2i64, 0, 1] {
            let k = Given::Constant(Tensor::scalar(k).unwrap());
            agree(Trilu { upper }, &[fed_random(&[2, 4, 5]), k], 1, 0.0);
        }
    }
    let value = Tensor::from_slice(&[1], &[-3i64]).unwrap();
    agree(ConstantOfShape { value }, &[i64s(&[2, 3])], 1, 0.0);
}

#[test]
fn gathers_and_scatters() {
    if gpu().is_none() {
        return;
    }
    let wide = |s: &[usize], v: &[i64]| Given::Fed(Tensor::from_slice(s, v).unwrap());
    let narrow = |s: &[usize], v: &[i32]| Given::Fed(Tensor::from_slice(s, v).unwrap());
    for axis in [0, 1, -1] {
        for x in [
            fed_random(&[3, 4, 8]),
            longs(&[3, 4, 5]),
            truths(&[3, 3, 3]),
        ] {
            agree(
                Gather { axis },
                &[x.clone(), wide(&[2, 2], &[0, -1, 2, 1])],
                1,
                0.0,
            );
            agree(Gather { axis }, &[x.clone(), narrow(&[], &[-2])], 1, 0.0);
            let floats = Tensor::from_slice(&[4], &[0.0f32, 1.9, -1.9, 2.0]).unwrap();
            let cast = GatherCast(Gather { axis });
            agree(cast, &[x, Given::Fed(floats)], 1, 0.0);
        }
    }
    let x = fed_random(&[3, 4]);
    let indices = wide(&[2, 4], &[0, 2, -1, 1, 1, 0, 2, -2]);
    agree(
        GatherElements { axis: 0 },
        &[x.clone(), indices.clone()],
        1,
        0.0,
    );
    let indices = wide(&[2, 3], &[0, 2, -1, 1, 0, 3]);
    let op = ScatterElements {
        axis: 1,
        reduction: ScatterReduction::None,
    };
    agree(op, &[x, indices, fed_random(&[2, 3])], 1, 0.0);
    let x = fed_random(&[2, 3, 4]);
    let tuples = wide(&[2, 2], &[0, -1, 1, 2]);
    agree(
        GatherNd { batch_dims: 0 },
        &[x.clone(), tuples.clone()],
        1,
        0.0,
    );
    let one = wide(&[2, 2, 1], &[0, 2, 1, -1]);
    agree(GatherNd { batch_dims: 1 }, &[x.clone(), one], 1, 0.0);
    let op = ScatterNd {
        reduction: ScatterReduction::None,
    };
    agree(op, &[x, tuples, fed_random(&[2, 4])], 1, 0.0);
    let depth = Given::Constant(Tensor::scalar(4i64).unwrap());
    let values = Given::Fed(f32s(&[2], &[-1.0, 3.0]));
    for axis in [-1, 0, 1] {
        let far = Tensor::from_slice(&[2, 3], &[0, 3, u32::MAX, 1, 2, 4]).unwrap();
        for indices in [
            wide(&[2, 3], &[0, 3, -1, 1, (1 << 32) + 2, -4]),
            Given::Fed(far),
        ] {
            agree(
                OneHot { axis },
                &[indices, depth.clone(), values.clone()],
                1,
                0.0,
            );
        }
    }
}

#[test]
fn what_the_gpu_cannot_is_refused_with_a_reason() {
    if gpu().is_none() {
        return;
    }
    use std::sync::Arc;
    let halves = Given::Fed(Tensor::zeros(DType::F16, &[4]).unwrap());
    let spec = stage(
        Arc::new(Transpose { perm: vec![0] }),
        &[halves],
        &[(DType::F16, vec![4])],
    );
    assert!(supports(&spec).unwrap_err().contains("float16"));
    let indices = i64s(&[5]);
    let spec = stage(
        Arc::new(Gather { axis: 0 }),
        &[fed_random(&[3]), indices],
        &[(DType::F32, vec![1])],
    );
    assert!(supports(&spec).unwrap_err().contains("out of range"));
}

#[test]
fn resizes() {
    if gpu().is_none() {
        return;
    }
    use CoordinateMode::*;
    let modes = [
        ResizeMode::Linear,
        ResizeMode::Cubic { a: -0.75 },
        ResizeMode::Nearest(NearestMode::RoundPreferFloor),
        ResizeMode::Nearest(NearestMode::RoundPreferCeil),
        ResizeMode::Nearest(NearestMode::Floor),
        ResizeMode::Nearest(NearestMode::Ceil),
    ];
    for mode in modes {
        for coordinates in [
            HalfPixel,
            HalfPixelSymmetric,
            PytorchHalfPixel,
            AlignCorners,
            Asymmetric,
        ] {
            for (antialias, exclude_outside) in [(false, false), (true, false), (false, true)] {
                let nearest = matches!(mode, ResizeMode::Nearest(_));
                if nearest && (antialias || exclude_outside) {
                    continue;
                }
                for sizes in [[1i64, 2, 9, 7], [1, 2, 3, 4], [1, 2, 5, 3], [1, 2, 1, 12]] {
                    let op = Resize {
                        mode,
                        coordinates,
                        antialias,
                        exclude_outside,
                        extrapolation: 0.0,
                        axes: None,
                        policy: AspectPolicy::Stretch,
                    };
                    let given = [
                        fed_random(&[1, 2, 5, 6]),
                        Given::Absent,
                        Given::Absent,
                        i64s(&sizes),
                    ];
                    agree(op, &given, 1, 1e-5);
                }
            }
        }
    }
}
