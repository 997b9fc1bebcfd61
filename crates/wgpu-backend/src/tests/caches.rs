//! Updates of caches.

use std::any::Any;
use std::sync::{Arc, Weak};

use kilim_core::backend::Backend;
use kilim_core::ops::{Binary, BinaryKind, Fact, TensorScatter};
use kilim_core::{
    DType, Datum, Dim, ErrorCode, Graph, Keep, Result, RunOptions, Session, SessionOptions, Shape,
    Tensor,
};

use super::harness::*;
use crate::WgpuBackend;
use crate::device::gpu::{Gpu, GpuBuffer};
use crate::device::selection::Selection;
use crate::executable::exported::ExportedTensor;

#[test]
fn updates_of_caches() {
    if gpu().is_none() {
        return;
    }
    // Elements behind the axis that are read four at once, and one by one.
    for inner in [8, 3] {
        for axis in [1, 2, -2] {
            for circular in [false, true] {
                let op = TensorScatter { axis, circular };
                let (mut whole, mut part) = ([2, 6, 6, inner], [2, 6, 6, inner]);
                let axis = if axis == 1 { 1 } else { 2 };
                part[axis] = 4;
                whole[axis] = 7;
                let cache = Given::Fed(random(&whole, 1));
                let update = Given::Fed(random(&part, 2));
                agree(op.clone(), &[cache.clone(), update.clone()], 1, 0.0);
                let starts = if circular { [5i64, 20] } else { [0, 3] };
                let starts = Given::Fed(Tensor::from_slice(&[2], &starts).unwrap());
                agree(op.clone(), &[cache.clone(), update.clone(), starts], 1, 0.0);
                if !circular {
                    // The second update ends behind the cache.
                    let starts = Given::Fed(Tensor::from_slice(&[2], &[0i64, 5]).unwrap());
                    let length = Given::Constant(Tensor::from_slice(&[1], &[9i64]).unwrap());
                    agree(op, &[cache, update, starts, length], 1, 0.0);
                }
            }
        }
    }
}

/// A cache `[1, room, 2]` that words are written on.
struct Written {
    session: Session,
    words: usize,
}

impl Written {
    /// On a device of its own; the cache has `room` places where that is known.
    fn open(room: Option<usize>) -> Option<Written> {
        Written::of_words(room, 1)
    }

    /// So many `words` are written at a time.
    fn of_words(room: Option<usize>, words: usize) -> Option<Written> {
        let gpu = match pollster::block_on(Gpu::open(&Selection::default())) {
            Ok(gpu) => gpu,
            Err(e) => {
                kilim_test_support::skip(e);
                return None;
            }
        };
        let room = room.map_or(Dim::Symbol("room".into()), Dim::Known);
        let shape = Shape(vec![Dim::Known(1), room, Dim::Known(2)]);
        let mut g = Graph::new("written");
        let past = g.add_input("past", Fact::new(DType::F32, shape));
        let word = g.add_input("word", Fact::fixed(DType::F32, &[1, words, 2]));
        let at = g.add_input("at", Fact::fixed(DType::I64, &[1]));
        let op = TensorScatter {
            axis: 1,
            circular: false,
        };
        let present = g.apply("present", op, &[past, word, at]);
        let twice = g.apply("twice", Binary::new(BinaryKind::Add), &[present, present]);
        g.outputs.extend([present, twice]);
        let backends: Vec<Arc<dyn Backend>> = vec![Arc::new(WgpuBackend::on(gpu, true))];
        let evaluator = Arc::new(kilim_simd_cpu::backend());
        let options = SessionOptions {
            strict: true,
            ..SessionOptions::default()
        };
        let session = Session::new(g, backends, evaluator, options);
        Some(Written {
            session: pollster::block_on(session).unwrap(),
            words,
        })
    }

    /// Writes the words `[i, i + 0.5]` from place `i` on: the cache, which stays on the device, and twice its numbers.
    fn write(&mut self, past: Datum, i: usize) -> Result<(Datum, Vec<f32>)> {
        let words = i..i + self.words;
        let numbers: Vec<f32> = words.flat_map(|i| [i as f32, i as f32 + 0.5]).collect();
        let word = f32s(&[1, self.words, 2], &numbers);
        let at = Tensor::from_slice(&[1], &[i as i64]).unwrap();
        let inputs = vec![("past", past), ("word", word.into()), ("at", at.into())];
        let options = RunOptions {
            keep: Keep::new(["present:0"]),
            ..RunOptions::default()
        };
        let outputs = pollster::block_on(self.session.run_owned(inputs, &options))?;
        let [(_, present), (_, twice)] = <[_; 2]>::try_from(outputs).unwrap();
        let twice = twice.tensor()?.as_slice::<f32>()?.to_vec();
        Ok((present, twice))
    }
}

/// The numbers of a cache in which the first words are written.
fn words(count: usize, room: usize) -> Vec<f32> {
    let word = |i: usize| match i < count {
        true => [i as f32, i as f32 + 0.5],
        false => [0.0; 2],
    };
    (0..room).flat_map(word).collect()
}

fn doubled(numbers: &[f32]) -> Vec<f32> {
    numbers.iter().map(|x| x * 2.0).collect()
}

fn buffer(datum: &Datum) -> Arc<GpuBuffer> {
    let Datum::Device(tensor) = datum else {
        panic!("the cache is not on the device");
    };
    let handle: &dyn Any = tensor.handle.as_ref();
    let exported: &ExportedTensor = handle.downcast_ref().unwrap();
    exported.buffer.clone()
}

fn numbers(datum: &Datum) -> Vec<f32> {
    let Datum::Device(tensor) = datum else {
        panic!("the cache is not on the device");
    };
    let tensor = pollster::block_on(tensor.read()).unwrap();
    tensor.as_slice::<f32>().unwrap().to_vec()
}

#[test]
fn a_cache_that_goes_round_stays_where_it_is() {
    for room in [Some(4), None] {
        let Some(mut written) = Written::open(room) else {
            return;
        };
        // From the host at first.
        let mut cache: Datum = f32s(&[1, 4, 2], &[0.0; 8]).into();
        let mut place = Weak::new();
        for i in 0..4 {
            let (present, twice) = written.write(cache, i).unwrap();
            assert_eq!(twice, doubled(&words(i + 1, 4)), "word {i}");
            let now = Arc::downgrade(&buffer(&present));
            assert!(i == 0 || Weak::ptr_eq(&place, &now), "word {i} was copied");
            place = now;
            cache = present;
        }
        assert_eq!(numbers(&cache), words(4, 4));
    }
}

#[test]
fn a_cache_that_others_hold_is_copied() {
    let Some(mut written) = Written::open(Some(4)) else {
        return;
    };
    let empty: Datum = f32s(&[1, 4, 2], &[0.0; 8]).into();
    let (first, _) = written.write(empty, 0).unwrap();
    let (second, twice) = written.write(first.clone(), 1).unwrap();
    assert_eq!(twice, doubled(&words(2, 4)));
    assert!(!Arc::ptr_eq(&buffer(&first), &buffer(&second)));
    assert_eq!(numbers(&first), words(1, 4));
    // Another way on from the same place.
    let (other, _) = written.write(first, 3).unwrap();
    assert_eq!(numbers(&other)[6..], [3.0, 3.5]);
    assert_eq!(numbers(&second), words(2, 4));
    // Results are the run's own: the next run does not change them.
    let (third, _) = written.write(second.clone(), 2).unwrap();
    assert_eq!(numbers(&second), words(2, 4));
    assert_eq!(numbers(&third), words(3, 4));
}

/// The plan is changed for a cache of another size, and made anew where it cannot be.
#[test]
fn caches_of_several_sizes_take_turns() {
    let Some(mut written) = Written::open(None) else {
        return;
    };
    let empty = |room: usize| Datum::from(Tensor::zeros(DType::F32, &[1, room, 2]).unwrap());
    let (mut small, mut large) = (empty(3), empty(7));
    for i in 0..3 {
        let twice;
        (small, twice) = written.write(small, i).unwrap();
        assert_eq!(
            twice,
            doubled(&words(i + 1, 3)),
            "word {i} of the small one"
        );
        let twice;
        (large, twice) = written.write(large, i).unwrap();
        assert_eq!(
            twice,
            doubled(&words(i + 1, 7)),
            "word {i} of the large one"
        );
    }
    assert_eq!(numbers(&small), words(3, 3));
    assert_eq!(numbers(&large), words(3, 7));
}

#[test]
fn a_place_outside_of_a_cache_is_an_error() {
    let Some(mut written) = Written::open(Some(4)) else {
        return;
    };
    let empty: Datum = f32s(&[1, 4, 2], &[0.0; 8]).into();
    let error = written.write(empty.clone(), 4).unwrap_err();
    assert_eq!(error.code(), ErrorCode::InvalidValue, "{error}");
    let (cache, _) = written.write(empty, 0).unwrap();
    assert_eq!(numbers(&cache), words(1, 4));
}

#[test]
fn any_number_of_words_is_written() {
    for count in [0, 2, 3] {
        let Some(mut written) = Written::of_words(Some(4), count) else {
            return;
        };
        let mut cache: Datum = f32s(&[1, 4, 2], &[0.0; 8]).into();
        for _ in 0..2 {
            let twice;
            (cache, twice) = written.write(cache, 0).unwrap();
            assert_eq!(twice, doubled(&words(count, 4)), "{count} words");
        }
        assert_eq!(numbers(&cache), words(count, 4));
    }
}
