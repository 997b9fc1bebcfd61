//! Inputs that a run may use up: what only it holds, and the model writes on, is not copied.

use std::sync::atomic::AtomicBool;

use kilim::core::ValueId;
use kilim::core::ops::TensorScatter;
use kilim::{Datum, Keep};
use kilim_tests::machine::gpu_beside_others;

use crate::*;

const ROOM: usize = 40;

/// What a model does with its input beside writing on it.
type More = dyn Fn(&mut Graph, ValueId);

/// `[1, 2, words, 3]`.
fn keys(words: usize, of: impl Fn(usize, usize) -> f32) -> Tensor {
    let places = (0..2).flat_map(|head| (0..words).map(move |word| (head, word)));
    let values = places.flat_map(|(head, word)| [of(head, word); 3]);
    f32s(&[1, 2, words, 3], &values.collect::<Vec<f32>>())
}

/// What word `word` leaves in the cache.
fn key(head: usize, word: usize) -> f32 {
    (1 + word) as f32 - 0.5 * head as f32
}

/// A cache with the first `words` words, and zeros behind them.
fn known(words: usize) -> Tensor {
    keys(ROOM, |h, w| if w < words { key(h, w) } else { 0.0 })
}

/// `present`: `past` with `new` from the place `at` on, and `twice` of it. `more` reads `past`, too.
fn scattering(more: impl Fn(&mut Graph, ValueId)) -> Graph {
    let mut g = Graph::new("cache");
    let fact = |words: &str| {
        let dims = [
            Dim::Known(1),
            Dim::Known(2),
            Dim::Symbol(words.into()),
            Dim::Known(3),
        ];
        Fact::new(DType::F32, Shape(dims.to_vec()))
    };
    let past = g.add_input("past", fact("room"));
    let new = g.add_input("new", fact("n"));
    let at = g.add_input("at", Fact::fixed(DType::I64, &[1]));
    let op = TensorScatter {
        axis: 2,
        circular: false,
    };
    let present = g.apply("present", op, &[past, new, at]);
    let twice = g.apply("twice", add(), &[present, present]);
    g.outputs.extend([present, twice]);
    more(&mut g, past);
    g
}

fn on(backend: &str, graph: Graph) -> Session {
    let options = LoadOptions {
        backends: [backend, "cpu"].map(BackendId::from).to_vec(),
        ..LoadOptions::default()
    };
    pollster::block_on(Runtime::shared().session(graph, options)).unwrap()
}

fn keeping() -> RunOptions {
    RunOptions {
        keep: Keep::new(["present*"]),
        ..RunOptions::default()
    }
}

/// The inputs of the step that brings word `word`.
fn step(past: Datum, word: usize) -> Vec<(&'static str, Datum)> {
    let new = keys(1, |head, _| key(head, word));
    let at = i64s(&[word as i64]);
    vec![("past", past), ("new", new.into()), ("at", at.into())]
}

fn owned(
    session: &mut Session,
    inputs: Vec<(&str, Datum)>,
    options: &RunOptions,
) -> Result<Vec<Datum>> {
    let out = pollster::block_on(session.run_owned(inputs, options))?;
    Ok(out.into_iter().map(|(_, datum)| datum).collect())
}

fn read(datum: &Datum) -> Tensor {
    match datum {
        Datum::Device(tensor) => pollster::block_on(tensor.read()).unwrap(),
        other => other.tensor().unwrap().clone(),
    }
}

fn place(datum: &Datum) -> *const u8 {
    read(datum).read().unwrap().as_ptr()
}

#[test]
fn a_cache_stays_where_it_is() {
    let mut s = on("cpu", scattering(|_, _| {}));
    let start = Datum::from(known(0));
    let (at, mut past) = (place(&start), start);
    for word in 0..ROOM {
        let out = owned(&mut s, step(past, word), &keeping()).unwrap();
        let want = known(word + 1);
        assert_eq!(read(&out[0]), want, "word {word}");
        let doubled: Vec<f32> = want
            .as_slice::<f32>()
            .unwrap()
            .iter()
            .map(|x| 2.0 * x)
            .collect();
        assert_eq!(out[1].tensor().unwrap().as_slice::<f32>().unwrap(), doubled);
        past = out[0].clone();
        assert_eq!(place(&past), at, "word {word} is in other memory");
    }
    // A cache of another room goes on in its own memory, too, and so does the first behind it.
    let longer = Datum::from(f32s(&[1, 2, 100, 3], &[0.5; 600]));
    let at_longer = place(&longer);
    let out = owned(&mut s, step(longer, 60), &keeping()).unwrap();
    assert_eq!(place(&out[0]), at_longer);
    let out = owned(&mut s, step(past, 3), &keeping()).unwrap();
    assert_eq!((place(&out[0]), read(&out[0])), (at, known(ROOM)));
}

#[test]
fn what_somebody_else_holds_stays_as_it_is() {
    let gpu = gpu_beside_others().map(|_| "wgpu");
    for backend in std::iter::once("cpu").chain(gpu) {
        let mut s = on(backend, scattering(|_, _| {}));
        let mut past = Datum::from(known(0));
        let mut held = Vec::new();
        for word in 0..ROOM {
            if word % 7 == 0 {
                held.push((word, past.clone()));
            }
            let inputs = step(past, word);
            if word % 5 == 2 {
                let twice = pollster::block_on(s.run_data(&inputs, &keeping())).unwrap();
                assert_eq!(read(&twice[0].1), known(word + 1), "{backend}");
            }
            past = owned(&mut s, inputs, &keeping()).unwrap().swap_remove(0);
        }
        assert_eq!(read(&past), known(ROOM), "{backend}");
        for (word, datum) in held {
            assert_eq!(read(&datum), known(word), "{backend}, word {word}");
        }
    }
}

/// Whoever else reads the input in the model sees it as it was.
#[test]
fn what_the_model_reads_elsewhere_is_copied() {
    let minus = |g: &mut Graph, past| {
        let y = g.apply("minus", Unary(UnaryKind::Neg), &[past]);
        g.outputs.push(y);
    };
    let through = |g: &mut Graph, past| g.outputs.push(past);
    let shaped = |g: &mut Graph, past| {
        let shape = g.add_constant("flat", i64s(&[-1, 3]));
        let y = g.apply("flat", Reshape { allow_zero: false }, &[past, shape]);
        g.outputs.push(y);
    };
    let more: [&More; 3] = [&minus, &through, &shaped];
    for (i, more) in more.into_iter().enumerate() {
        let mut s = on("cpu", scattering(more));
        for word in 4..8 {
            let out = owned(&mut s, step(known(word).into(), word), &keeping()).unwrap();
            assert_eq!(read(&out[0]), known(word + 1));
            let sign = if i == 0 { -1.0 } else { 1.0 };
            let was: Vec<f32> = known(word)
                .as_slice::<f32>()
                .unwrap()
                .iter()
                .map(|x| sign * x)
                .collect();
            assert_eq!(
                out[2].tensor().unwrap().as_slice::<f32>().unwrap(),
                was,
                "{i}"
            );
        }
    }
}

#[test]
fn a_run_that_fails_leaves_clones_as_they_were() {
    let mut s = on("cpu", scattering(|_, _| {}));
    let past = owned(&mut s, step(known(0).into(), 0), &keeping())
        .unwrap()
        .swap_remove(0);
    let held = past.clone();
    let error = owned(&mut s, step(past, ROOM), &keeping()).unwrap_err();
    assert_eq!(error.code(), ErrorCode::InvalidValue);
    let error = owned(&mut s, step(held.clone(), ROOM), &keeping()).unwrap_err();
    assert_eq!(error.code(), ErrorCode::InvalidValue);
    let stopped = RunOptions {
        abort: Some(Arc::new(AtomicBool::new(true))),
        ..keeping()
    };
    let error = owned(&mut s, step(held.clone(), 1), &stopped).unwrap_err();
    assert_eq!(error.code(), ErrorCode::Aborted);
    assert_eq!(read(&held), known(1));
    // Memory that a failed run had taken is not that of a later result.
    let error = owned(&mut s, step(known(9).into(), ROOM), &keeping()).unwrap_err();
    assert_eq!(error.code(), ErrorCode::InvalidValue);
    let out = owned(&mut s, step(held, 1), &keeping()).unwrap();
    let other = owned(&mut s, step(known(5).into(), 5), &keeping()).unwrap();
    assert_eq!((read(&out[0]), read(&other[0])), (known(2), known(6)));
}

#[test]
fn a_tensor_that_is_given_twice_is_copied() {
    let mut g = scattering(|_, _| {});
    let other = g.add_input("other", g.value(g.inputs[0]).fact.clone());
    let y = g.apply("y", add(), &[other, other]);
    g.outputs.push(y);
    let mut s = on("cpu", g);
    let past = Datum::from(known(3));
    let mut inputs = step(past.clone(), 3);
    inputs.push(("other", past));
    let out = owned(&mut s, inputs, &keeping()).unwrap();
    assert_eq!(read(&out[0]), known(4));
    let sum = out[2].tensor().unwrap().as_slice::<f32>().unwrap()[3 * 3];
    assert_eq!(
        sum, 0.0,
        "what was written into the cache is in the other input"
    );
}

#[test]
fn the_outputs_that_are_written_on_inputs_are_told() {
    let s = on("cpu", scattering(|_, _| {}));
    let present = s.outputs()[0].name.as_str();
    assert_eq!(s.written_on(), [(present, "past")]);
    let mut g = Graph::new("sum");
    let x = g.add_input("x", Fact::fixed(DType::F32, &[2]));
    let y = g.apply("y", add(), &[x, x]);
    g.outputs.push(y);
    assert!(on("cpu", g).written_on().is_empty());
}
