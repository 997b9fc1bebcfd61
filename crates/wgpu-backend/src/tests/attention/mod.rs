//! Attention against the CPU backend, by every kernel that there is for it.

mod seen;

use std::sync::Arc;

use kilim_core::ops::{Align, Attention};
use kilim_core::{Backend, DType, Tensor};

use super::harness::*;

/// The dimensions of a node.
#[derive(Clone, Copy, Debug)]
struct Dims {
    batch: usize,
    heads: usize,
    key_heads: usize,
    queries: usize,
    keys: usize,
    size: usize,
    values: usize,
}

/// Nothing is a multiple of a tile.
const ODD: Dims = Dims {
    batch: 2,
    heads: 6,
    key_heads: 2,
    queries: 7,
    keys: 45,
    size: 13,
    values: 11,
};

impl Dims {
    fn inputs(self) -> Vec<Given> {
        let shape = |heads, rows, size| [self.batch, heads, rows, size];
        vec![
            Given::Fed(random(&shape(self.heads, self.queries, self.size), 1)),
            Given::Fed(random(&shape(self.key_heads, self.keys, self.size), 2)),
            Given::Fed(random(&shape(self.key_heads, self.keys, self.values), 3)),
        ]
    }

    /// These inputs, and optional ones from number 3 on.
    fn with(self, more: impl IntoIterator<Item = Given>) -> Vec<Given> {
        let mut inputs = self.inputs();
        inputs.extend(more);
        inputs
    }
}

fn fed_i64s(data: &[i64]) -> Given {
    Given::Fed(Tensor::from_slice(&[data.len()], data).unwrap())
}

/// Every kernel gives what the CPU gives; returns how many there are.
#[track_caller]
fn check(op: &Attention, inputs: &[Given]) -> usize {
    let want = expected(op, inputs, 1).remove(0);
    every_kernel(op.clone(), inputs, want.shape(), &values(&want), 1e-5)
}

fn plain() -> Attention {
    Attention {
        scale: 0.7,
        ..Attention::default()
    }
}

#[test]
fn sizes_and_groups() {
    on_both(check_sizes_and_groups);
}

fn check_sizes_and_groups() {
    let of = |[batch, heads, key_heads, queries, keys, size, values]: [usize; 7]| Dims {
        batch,
        heads,
        key_heads,
        queries,
        keys,
        size,
        values,
    };
    for dims in [
        [1, 1, 1, 1, 1, 1, 1],
        [2, 6, 2, 7, 45, 13, 11],
        [1, 4, 4, 33, 32, 64, 64],
        [1, 9, 3, 129, 129, 64, 64],
        [3, 2, 1, 5, 70, 80, 96],
        [1, 2, 2, 3, 31, 128, 128],
        [1, 3, 1, 9, 40, 256, 256],
        [1, 2, 1, 2, 65, 33, 300],
        [1, 8, 1, 2, 33, 4, 132],
        // Whole quads of one, but not of the other.
        [1, 2, 1, 4, 9, 8, 6],
        [1, 2, 1, 4, 9, 6, 8],
    ] {
        let dims = of(dims);
        eprintln!("{dims:?}");
        check(&plain(), &dims.inputs());
        let causal = Attention {
            causal: true,
            align: Align::End,
            zeros: true,
            ..plain()
        };
        check(&causal, &dims.inputs());
    }
}

#[test]
fn one_query_and_many_keys() {
    on_both(check_one_query_and_many_keys);
}

fn check_one_query_and_many_keys() {
    for keys in [1, 2, 31, 32, 33, 127, 128, 129, 255, 256, 257, 600, 1025] {
        let dims = Dims {
            batch: 1,
            heads: 9,
            key_heads: 3,
            queries: 1,
            keys,
            size: 64,
            values: 64,
        };
        let op = Attention {
            causal: true,
            align: Align::End,
            ..plain()
        };
        check(&op, &dims.inputs());
    }
    // Parts that sinks, lengths and windows leave nothing of, and where columns are cut, too.
    let dims = Dims {
        queries: 2,
        keys: 700,
        values: 150,
        ..ODD
    };
    let given = dims.with([
        Given::Absent,
        Given::Absent,
        fed_i64s(&[700, 130]),
        Given::Fed(random(&[6], 5)),
    ]);
    // Windows begin within a block, and reach from part to part.
    for left in [-1, 40, 300, 611] {
        let op = Attention {
            align: Align::End,
            left,
            ..plain()
        };
        check(&op, &given);
        let op = Attention { zeros: true, ..op };
        check(&op, &given[..6]);
    }
}

#[test]
fn keys_in_parts_are_merged() {
    if gpu().is_none() {
        return;
    }
    let dims = Dims {
        queries: 1,
        keys: 300,
        ..ODD
    };
    assert_eq!(agree(plain(), &dims.inputs(), 1, 1e-5), 2);
    let few = Dims { keys: 100, ..dims };
    assert_eq!(agree(plain(), &few.inputs(), 1, 1e-5), 1);
    assert!(check(&plain(), &dims.inputs()) >= 2);
    let some = Dims { queries: 4, ..dims };
    assert_eq!(check(&plain(), &some.inputs()), 4);
}

#[test]
fn attributes() {
    on_both(check_attributes);
}

fn check_attributes() {
    let capped = |cap| Attention {
        scale: 3.0,
        softcap: Some(cap),
        ..plain()
    };
    check(&capped(1.5), &ODD.inputs());
    check(&capped(0.01), &ODD.inputs());
    for align in [Align::Start, Align::End] {
        for causal in [false, true] {
            for (left, right) in [(-1, -1), (0, -1), (3, 2), (-1, 5), (i64::MAX, i64::MAX)] {
                let op = Attention {
                    causal,
                    left,
                    right,
                    align,
                    ..plain()
                };
                check(&op, &ODD.inputs());
                // More queries than keys: some see nothing.
                let dims = Dims {
                    queries: 50,
                    keys: 37,
                    ..ODD
                };
                check(&op, &dims.inputs());
                check(&Attention { zeros: true, ..op }, &dims.inputs());
            }
        }
    }
}

#[test]
fn empty_tensors() {
    on_both(check_empty_tensors);
}

fn check_empty_tensors() {
    for zeros in [false, true] {
        let op = Attention { zeros, ..plain() };
        for dims in [
            Dims { keys: 0, ..ODD },
            Dims { queries: 0, ..ODD },
            Dims { batch: 0, ..ODD },
            Dims { size: 0, ..ODD },
            Dims { values: 0, ..ODD },
        ] {
            check(&op, &dims.inputs());
        }
    }
}

#[test]
fn half_precision() {
    on_both(check_half_precision);
}

fn check_half_precision() {
    for dims in [
        ODD,
        Dims {
            size: 64,
            values: 64,
            ..ODD
        },
        Dims {
            queries: 1,
            keys: 400,
            ..ODD
        },
    ] {
        let mut inputs = dims.with([
            Given::Fed(random(&[dims.keys], 4)),
            Given::Absent,
            fed_i64s(&[45, 30]),
            Given::Fed(random(&[6], 5)),
        ]);
        for i in [0, 1, 2, 3, 6] {
            if let Given::Fed(t) = &inputs[i] {
                inputs[i] = Given::Fed(halved(t));
            }
        }
        if gpu().unwrap().describe().f16() {
            agree(plain(), &inputs, 1, 5e-3);
            continue;
        }
        let shape = vec![dims.batch, dims.heads, dims.queries, dims.values];
        let spec = stage(Arc::new(plain()), &inputs, &[(DType::F16, shape)]);
        let refused = Err("the adapter has no shader-f16".to_string());
        assert_eq!(supports(&spec), refused);
    }
}

#[test]
fn what_is_refused() {
    if gpu().is_none() {
        return;
    }
    let op = Attention {
        softcap: Some(0.0),
        ..plain()
    };
    let shape = vec![ODD.batch, ODD.heads, ODD.queries, ODD.values];
    let spec = stage(Arc::new(op), &ODD.inputs(), &[(DType::F32, shape)]);
    let reason = supports(&spec).unwrap_err();
    assert!(reason.contains("other than zero"), "{reason}");
}
