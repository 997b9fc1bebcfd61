//! Operators are equal where all that they consist of is, and only there.

use crate::reflect::Contents;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use super::*;
use crate::passes::common_subexpressions;
use crate::testing::{Content, Known, Random, Taste, content, mutations, operators};

/// Numbers and texts that are easily taken for others.
pub struct Extreme(pub Random);

impl Taste for Extreme {
    fn random(&mut self) -> &mut Random {
        &mut self.0
    }

    fn int(&mut self, min: i128, max: i128) -> i128 {
        let near = [min, max, 0, 1, 2, 1 << 24, 1 << 53, (1 << 53) + 1];
        let near: Vec<i128> = near
            .into_iter()
            .filter(|n| (min..=max).contains(n))
            .collect();
        self.0.of(&near)
    }

    fn float32(&mut self) -> f32 {
        let bits = [0x7f80_0001, 0x7fc0_0000, 0x7fc0_0001, 0xffc0_0000];
        let numbers = [0.0, -0.0, 1.0, 0.1, f32::INFINITY, f32::MIN_POSITIVE];
        let all: Vec<f32> = bits
            .map(f32::from_bits)
            .into_iter()
            .chain(numbers)
            .collect();
        self.0.of(&all)
    }

    fn float64(&mut self) -> f64 {
        let bits = [
            0x7ff0_0000_0000_0001,
            0x7ff8_0000_0000_0000,
            0x7ff8_0000_0000_0001,
        ];
        let numbers = [0.0, -0.0, 0.1, 9_007_199_254_740_992.0, f64::from(0.1f32)];
        let all: Vec<f64> = bits
            .map(f64::from_bits)
            .into_iter()
            .chain(numbers)
            .collect();
        self.0.of(&all)
    }

    fn text(&mut self) -> String {
        let texts = [
            "", " ", "a", "a\", \"b", "b", "None", "Some(1)", "é", "a\nb", "1",
        ];
        self.0.of(&texts).to_string()
    }

    fn tensor(&mut self) -> Tensor {
        let dtype = self.0.of(&DType::ALL);
        let count = self.0.of(&[0, 1, 2, 9, 12]);
        if dtype == DType::String {
            let texts: Vec<Arc<str>> = (0..count).map(|_| self.text().into()).collect();
            return Tensor::from_texts(&[count], texts).unwrap();
        }
        let bytes: Vec<u8> = match self.0.next(3) {
            // Each element 2^53, a NaN or -0.0, where the type has them.
            0 => (1i64 << 53).to_le_bytes().repeat(2 * count),
            1 => [0, 0, 0xc0, 0x7f].repeat(4 * count),
            _ => [0, 0, 0, 0x80].repeat(4 * count),
        };
        Tensor::from_raw(dtype, &[count], &bytes[..count * dtype.size()]).unwrap()
    }

    fn length(&mut self) -> usize {
        self.0.of(&[0, 1, 2, 3, 9])
    }
}

/// The number of nodes that merging leaves of two on one input.
fn merged(operators: [&Arc<dyn Operator>; 2]) -> usize {
    let mut graph = Graph::new("test");
    let x = graph.add_input("x", Fact::default());
    for operator in operators {
        graph.apply_shared(String::new(), operator.clone(), &[Some(x)]);
    }
    common_subexpressions::run(&mut graph).unwrap();
    graph.nodes.len()
}

/// Contents of one operator, the same at every run.
fn samples(known: &Known, count: usize, taste: &mut Extreme) -> Vec<Content> {
    let one = |_| content(&known.schema, taste);
    (0..count).map(one).collect()
}

#[test]
fn operators_built_alike_are_the_same_and_merged() {
    let (taste, hasher) = (&mut Extreme(Random(3)), RandomState::new());
    for known in operators() {
        for content in samples(&known, 40, taste) {
            let both = [(known.build)(&content), (known.build)(&content)];
            assert_eq!(*both[0], *both[1], "{} of {content:?}", known.type_name);
            let hashes = [0, 1].map(|i| hasher.hash_one(&both[i]));
            assert_eq!(hashes[0], hashes[1], "{} of {content:?}", known.type_name);
            let may_go = both[0].deterministic() && both[0].subgraphs().is_empty();
            let left = if may_go { 1 } else { 2 };
            assert_eq!(merged([&both[0], &both[1]]), left, "{content:?}");
        }
    }
}

#[test]
fn operators_that_differ_in_one_place_are_neither_the_same_nor_merged() {
    let taste = &mut Extreme(Random(5));
    let mut pairs = 0;
    for known in operators() {
        for one in samples(&known, 8, taste) {
            let first = (known.build)(&one);
            for other in mutations(&known.schema, &one, taste) {
                let second = (known.build)(&other);
                let what = || format!("{}: {one:?} and {other:?}", known.type_name);
                assert_ne!(*first, *second, "{}", what());
                assert_eq!(merged([&first, &second]), 2, "{}", what());
                pairs += 1;
            }
        }
    }
    assert!(pairs > 10_000, "{pairs} pairs");
}

/// A user's operators may differ in their definition alone, which is no attribute.
fn of_two_definitions(a: &dyn Operator, b: &dyn Operator) -> bool {
    match (a.downcast_ref::<Custom>(), b.downcast_ref::<Custom>()) {
        (Some(a), Some(b)) => !std::ptr::eq(a.operator(), b.operator()),
        _ => false,
    }
}

#[test]
fn operators_that_differ_have_attributes_that_differ() {
    let taste = &mut Extreme(Random(7));
    let mut pairs = 0;
    for known in operators() {
        for one in samples(&known, 8, taste) {
            let first = (known.build)(&one);
            let Ok(attributes) = first.attributes() else {
                continue;
            };
            for other in mutations(&known.schema, &one, taste) {
                let second = (known.build)(&other);
                let others = second.attributes().unwrap();
                let same = Contents(&attributes) == Contents(&others);
                let expected = of_two_definitions(&*first, &*second);
                assert_eq!(same, expected, "{}: {one:?} and {other:?}", known.type_name);
                pairs += 1;
            }
        }
    }
    assert!(pairs > 10_000, "{pairs} pairs");
}

#[test]
fn operators_of_two_types_are_never_the_same() {
    let unary = Arc::new(Squeeze) as Arc<dyn Operator>;
    let other = Arc::new(Unsqueeze) as Arc<dyn Operator>;
    assert_ne!(*unary, *other);
    assert_eq!(merged([&unary, &other]), 2);
}
