//! What a decoder's step of another length allocates: no more than one of an equal length, but for what grows.

#![cfg(not(target_arch = "wasm32"))]

use kilim::core::ops::{Attention, Concat, MatMul};
use kilim::{
    BackendId, DType, Datum, Dim, Fact, Graph, Keep, LoadOptions, RunOptions, Runtime, Session,
    Shape, Tensor,
};
use kilim_test_support::allocations::{Counting, calls};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const HEADS: usize = 2;
const SIZE: usize = 8;
const STEPS: usize = 1000;

/// Attention of a word to a cache, which grows by the word, under a mask of the scores that is as long.
fn decoder() -> Graph {
    let mut g = Graph::new("decoder");
    let known = Dim::Known;
    let fact = |heads: usize, rows: Dim, columns: Dim| {
        let dims = [known(1), known(heads), rows, columns];
        Fact::new(DType::F32, Shape(dims.to_vec()))
    };
    let symbol = |name: &str| Dim::Symbol(name.into());
    let x = g.add_input("x", fact(HEADS, known(1), known(SIZE)));
    let caches = ["past.key", "past.value"];
    let caches = caches.map(|name| g.add_input(name, fact(HEADS, symbol("past"), known(SIZE))));
    let mask = g.add_input("mask", fact(1, known(1), symbol("all")));
    let [query, key, value] = ["query", "key", "value"].map(|name| {
        let weights: Vec<f32> = (0..SIZE * SIZE)
            .map(|i| ((i * 37 + name.len()) % 19) as f32 / 19.0 - 0.5)
            .collect();
        let weights = Tensor::from_slice(&[SIZE, SIZE], &weights).unwrap();
        let weights = g.add_constant(format!("{name}.weights"), weights);
        g.apply(name, MatMul::default(), &[x, weights])
    });
    let joined = [("present.key", key), ("present.value", value)];
    let joined = joined.into_iter().zip(caches);
    let joined: Vec<_> = joined
        .map(|((name, new), past)| g.apply(name, Concat { axis: 2 }, &[past, new]))
        .collect();
    let y = g.apply(
        "y",
        Attention::default(),
        &[query, joined[0], joined[1], mask],
    );
    g.outputs.extend([y, joined[0], joined[1]]);
    g
}

fn on_threads(threads: usize) -> Session {
    let mut options = LoadOptions {
        backends: vec![BackendId::from("cpu")],
        ..LoadOptions::default()
    };
    options.context.threads = Some(threads);
    pollster::block_on(Runtime::shared().session(decoder(), options)).unwrap()
}

/// A tensor with memory of its own.
fn made(shape: &[usize], seed: usize) -> Datum {
    let count: usize = shape.iter().product();
    let values: Vec<f32> = (0..count)
        .map(|i| ((seed * 31 + i * 7) % 23) as f32 / 23.0 - 0.4)
        .collect();
    Tensor::from_slice(shape, &values).unwrap().into()
}

/// Runs a step and gives its outputs, and how often the run asked for memory.
fn step(
    session: &mut Session,
    caches: [Datum; 2],
    past: usize,
    keep: &RunOptions,
) -> (Vec<Datum>, usize) {
    let [key, value] = caches;
    let inputs = vec![
        ("x", made(&[1, HEADS, 1, SIZE], past)),
        ("past.key", key),
        ("past.value", value),
        ("mask", made(&[1, 1, 1, past + 1], 3)),
    ];
    let before = calls();
    let out = pollster::block_on(session.run_owned(inputs, keep)).unwrap();
    let asked = calls() - before;
    (out.into_iter().map(|(_, datum)| datum).collect(), asked)
}

fn caches(past: usize) -> [Datum; 2] {
    [1, 2].map(|seed| made(&[1, HEADS, past, SIZE], seed))
}

/// One test, since all threads count together.
#[test]
fn a_longer_step_allocates_no_more_than_an_equal_one() {
    let keep = RunOptions {
        keep: Keep::new(["present*"]),
        ..RunOptions::default()
    };
    for threads in [1, 2] {
        let equal = [100, 600].map(|length| {
            let mut session = on_threads(threads);
            let (out, _) = step(&mut session, caches(length - 1), length - 1, &keep);
            let past = || <[Datum; 2]>::try_from(out[1..].to_vec()).unwrap();
            let asked = (0..8).map(|_| step(&mut session, past(), length, &keep).1);
            asked.last().unwrap()
        });
        let equal = equal[0].max(equal[1]);

        let mut session = on_threads(threads);
        let mut past = caches(1);
        let mut more = 0;
        let mut asked = Vec::with_capacity(STEPS);
        for length in 1..=STEPS {
            let (out, calls) = step(&mut session, past, length, &keep);
            if length % 200 == 3 {
                let given = [1, 2].map(|i| cut(&out[i], length));
                let (fresh, _) = step(&mut on_threads(threads), given, length, &keep);
                assert_eq!(fresh[0].tensor().unwrap(), out[0].tensor().unwrap());
            }
            more += usize::from(calls > equal);
            asked.push(calls);
            past = <[Datum; 2]>::try_from(out[1..].to_vec()).unwrap();
        }
        // A plan where the operations have doubled, lengths that are inferred where they have, and memory that is larger by a quarter.
        assert!(
            more <= 64,
            "{more} steps asked more than {equal} times: {asked:?}"
        );
        // The first step plans, the second finds how lengths go on, and until the fifth caches get the room of a quarter that is more than a word.
        let (early, last) = (asked[5], asked[STEPS - 1]);
        assert!(early <= equal && last <= equal, "{early} {last} {equal}");
        let plans = session.report().plans;
        assert_eq!(plans.made + plans.adapted, STEPS);
        assert!(plans.made <= 12, "{plans:?}");

        // Runs of some outputs take turns with runs of all: what the outputs need is found once.
        let some = RunOptions {
            outputs: Some(Keep::default()),
            ..keep.clone()
        };
        let mut session = on_threads(threads);
        let turns =
            (0..6).map(|_| [&keep, &some].map(|how| step(&mut session, caches(9), 9, how).1));
        let last = turns.last().unwrap();
        assert!(last[1] <= last[0] + 2, "{last:?}");
    }
}

/// A cache without its last word, in memory of its own.
fn cut(cache: &Datum, words: usize) -> Datum {
    let whole = match cache {
        Datum::Device(tensor) => pollster::block_on(tensor.read()).unwrap(),
        other => other.tensor().unwrap().clone(),
    };
    let heads = whole.as_slice::<f32>().unwrap().chunks((words + 1) * SIZE);
    let kept: Vec<f32> = heads
        .flat_map(|head| head[..words * SIZE].to_vec())
        .collect();
    Tensor::from_slice(&[1, HEADS, words, SIZE], &kept)
        .unwrap()
        .into()
}
