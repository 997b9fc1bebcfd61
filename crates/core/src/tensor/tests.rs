use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::interrupt::{Interrupt, Meter};

fn texts(all: &[&str]) -> Tensor {
    let all: Vec<Arc<str>> = all.iter().map(|&t| t.into()).collect();
    Tensor::from_texts(&[all.len()], all).unwrap()
}

#[test]
fn strings_are_no_bytes() {
    let t = texts(&["a", "", "ü"]);
    assert_eq!(
        (t.dtype(), t.len(), t.read().unwrap()),
        (DType::String, 3, &[][..])
    );
    assert_eq!(
        t.reshaped(&[3, 1]).unwrap().texts().unwrap()[2].as_ref(),
        "ü"
    );
    assert!(t.to_f64s().is_err() && t.to_i64s().is_err());
    assert!(t.as_slice::<u32>().is_err());
    assert!(Tensor::from_raw(DType::String, &[1], &[0; 4]).is_err());
    assert!(Tensor::from_texts(&[2], vec![Arc::from("one")]).is_err());
    assert_eq!(
        Tensor::zeros(DType::String, &[2]).unwrap(),
        texts(&["", ""])
    );
    assert_ne!(t, texts(&["a", "", "u"]));
}

#[test]
fn runs_of_any_type() {
    let t = texts(&["a", "b", "c"]);
    let runs = [(&t, 1..3), (&t, 0..1)];
    let joined = Tensor::from_runs(DType::String, &[3], runs.into_iter()).unwrap();
    assert_eq!(joined, texts(&["b", "c", "a"]));
    let t = Tensor::from_slice(&[2], &[7i16, 8]).unwrap();
    let runs = || [(&t, 1..2), (&t, 0..2)].into_iter();
    let joined = Tensor::from_runs(DType::I16, &[3], runs()).unwrap();
    assert_eq!(joined.as_slice::<i16>().unwrap(), [8, 7, 8]);
    assert!(Tensor::from_runs(DType::U16, &[3], runs()).is_err());
    assert!(Tensor::from_runs(DType::I16, &[4], runs()).is_err());
    let beyond = [(&t, 1..3)].into_iter();
    assert!(Tensor::from_runs(DType::I16, &[2], beyond).is_err());
}

#[test]
fn filled_with_any_type() {
    let t = Tensor::filled(&[5, 7], &Tensor::scalar(-2.5f64).unwrap()).unwrap();
    assert_eq!(t.as_slice::<f64>().unwrap(), [-2.5; 35]);
    let t = Tensor::filled(&[3], &Tensor::from_bools(&[1], &[true]).unwrap()).unwrap();
    assert_eq!((t.dtype(), t.read().unwrap()), (DType::Bool, &[1u8; 3][..]));
    assert_eq!(
        Tensor::filled(&[2], &texts(&["x"])).unwrap(),
        texts(&["x", "x"])
    );
    assert!(Tensor::filled(&[0, 4], &texts(&["x"])).unwrap().is_empty());
    assert!(Tensor::filled(&[2], &texts(&["x", "y"])).is_err());
}

#[test]
fn bytes_in_pieces() {
    let all: Vec<u8> = (0..300).map(|i| i as u8).collect();
    let mut bytes = AlignedBytes::with_capacity(1).unwrap();
    for piece in [0..3, 3..64, 64..64, 64..200, 200..201, 201..300] {
        bytes.extend_from_slice(&all[piece.clone()]);
        assert_eq!(bytes.as_slice(), &all[..piece.end]);
        for bytes in [&bytes, &bytes.clone()] {
            assert_eq!(bytes.as_slice(), &all[..piece.end]);
            assert!((bytes.as_slice().as_ptr() as usize).is_multiple_of(64));
        }
    }
    for len in 0..200 {
        let (mut zeros, mut room) = (
            AlignedBytes::zeroed(len).unwrap(),
            AlignedBytes::with_capacity(len).unwrap(),
        );
        assert_eq!(zeros.as_slice(), vec![0; len]);
        assert!((zeros.as_slice().as_ptr() as usize).is_multiple_of(64));
        assert!((zeros.as_mut_slice().as_ptr() as usize).is_multiple_of(64));
        assert!(room.spare::<u8>().len() >= len);
    }
}

#[test]
fn bytes_written_out_of_order() {
    let mut bytes = AlignedBytes::with_capacity(150).unwrap();
    bytes.extend_from_slice(&[1; 70]);
    let spare = bytes.spare::<u8>();
    assert!(spare.len() >= 80);
    spare[60..80].write_copy_of_slice(&[3; 20]);
    spare[..60].write_copy_of_slice(&[2; 60]);
    // SAFETY: both parts were written.
    unsafe { bytes.assume_init(80) }
    bytes.extend_from_slice(&[4; 5]);
    let want = [&[1u8; 70][..], &[2; 60], &[3; 20], &[4; 5]].concat();
    assert_eq!(bytes.as_slice(), want);
}

#[test]
fn packed_and_back() {
    let t = Tensor::from_packed(DType::I4, &[3], &[0x8f, 0x07]).unwrap();
    assert_eq!(t.to_i64s().unwrap(), [-1, -8, 7]);
    assert_eq!(t.to_packed().unwrap().as_ref(), [0x8f, 0x07]);
    let bits = t.reinterpreted(DType::U4).unwrap();
    assert_eq!(bits.to_i64s().unwrap(), [15, 8, 7]);
    assert_eq!(bits.reinterpreted(DType::I4).unwrap(), t);
    assert!(t.reinterpreted(DType::I8).is_err());
    assert!(Tensor::from_packed(DType::U2, &[5], &[0]).is_err());
    let t = Tensor::from_raw(DType::F8E5M2, &[2], &[0x3c, 0xc0]).unwrap();
    assert_eq!(t.to_f64s().unwrap(), [1.0, -2.0]);
}

/// A tensor whose elements are one more than those of `source`, and how often they were computed.
fn counted(source: &Tensor) -> (Tensor, Arc<AtomicUsize>) {
    let made = Arc::new(AtomicUsize::new(0));
    let count = made.clone();
    let later = source.later(DType::U8, source.shape(), move |source, from, to| {
        count.fetch_add(1, Ordering::Relaxed);
        source.copy_to(from, to)?;
        to.iter_mut().for_each(|b| *b += 1);
        Ok(())
    });
    (later.unwrap(), made)
}

#[test]
fn what_is_computed_late_is_computed_once_for_all_clones() {
    let source = Tensor::from_slice(&[3], &[1u8, 2, 3]).unwrap();
    let (later, made) = counted(&source);
    assert_eq!((later.len(), later.byte_len()), (3, 3));
    let clone = later.reshaped(&[3, 1]).unwrap();
    assert_eq!(made.load(Ordering::Relaxed), 0, "a shape asks for no data");
    assert_eq!(clone.read().unwrap(), [2, 3, 4]);
    assert_eq!(later.as_slice::<u8>().unwrap(), [2, 3, 4]);
    assert_eq!(made.load(Ordering::Relaxed), 1);
    assert_eq!(source.read().unwrap(), [1, 2, 3]);
}

#[test]
fn what_is_read_anew_is_not_kept() {
    let sum = |tensor: &Tensor| {
        let mut sum = 0;
        tensor.buffers(&mut |_, bytes| sum += bytes);
        sum
    };
    let source = Tensor::from_slice(&[3], &[1u8, 2, 3]).unwrap();
    let (first, _) = counted(&source);
    let (second, made) = counted(&first);
    assert_eq!(second.unread().read().unwrap(), [3, 4, 5]);
    assert_eq!(sum(&second), 3, "only the source is in memory");
    assert_eq!(second.read().unwrap(), [3, 4, 5]);
    assert_eq!(sum(&second), 6);
    assert_eq!(made.load(Ordering::Relaxed), 2);
}

#[test]
fn what_is_computed_late_may_fail_or_be_changed_in_a_copy() {
    let source = Tensor::from_slice(&[2], &[1u8, 2]).unwrap();
    let failing = |_: &Tensor, _, _: &mut [u8]| Err(Error::new(ErrorCode::Limit, "no memory"));
    let failing = source.later(DType::U8, &[2], failing).unwrap();
    assert_eq!(failing.read().unwrap_err().code(), ErrorCode::Limit);
    assert!(failing.as_slice::<u8>().is_err());
    let (mut later, _) = counted(&source);
    let clone = later.clone();
    later.make_mut::<u8>().unwrap()[0] = 9;
    assert_eq!(
        (later.read().unwrap(), clone.read().unwrap()),
        (&[9, 3][..], &[2, 3][..])
    );
    assert!(later.is_unshared() && !counted(&source).0.is_unshared());
}

#[test]
fn what_was_computed_and_changed_is_not_computed_anew() {
    let source = Tensor::from_slice(&[2], &[1u8, 2]).unwrap();
    let (mut later, made) = counted(&source);
    assert_eq!(later.read().unwrap(), [2, 3]);
    assert!(later.is_unshared());
    later.make_mut::<u8>().unwrap()[0] = 9;
    assert_eq!(
        (later.unread().read().unwrap(), later.read().unwrap()),
        (&[9, 3][..], &[9, 3][..])
    );
    assert_eq!(made.load(Ordering::Relaxed), 1);
}

#[test]
fn a_part_is_computed_without_the_rest() {
    let source = Tensor::from_slice(&[4], &[1u8, 2, 3, 4]).unwrap();
    let (later, made) = counted(&source);
    let meter = Meter::new(&Interrupt::NEVER);
    let (mut room, mut other) = (Vec::new(), Vec::new());
    assert_eq!(later.run::<u8>(&meter, 1..3, &mut room).unwrap(), [3, 4]);
    assert_eq!(later.run::<u8>(&meter, 3..4, &mut room).unwrap(), [5]);
    assert!(later.run::<u8>(&meter, 3..5, &mut room).is_err());
    assert!(later.run::<i8>(&meter, 0..1, &mut Vec::new()).is_err());
    assert_eq!(made.load(Ordering::Relaxed), 2);
    assert_eq!(later.read().unwrap(), [2, 3, 4, 5]);
    assert_eq!(later.run::<u8>(&meter, 0..2, &mut other).unwrap(), [2, 3]);
    assert_eq!(made.load(Ordering::Relaxed), 3);
    assert!(other.is_empty(), "what is in memory is not copied");
}

#[test]
fn a_part_of_a_file_that_is_not_aligned_is_copied_when_it_is_read() {
    let file: Vec<u8> = (0..9).collect();
    let file = Arc::new(AlignedBytes::copy_of(&file).unwrap());
    let tensor = Tensor::view(DType::I16, &[4], file, 1, 8).unwrap();
    let meter = Meter::new(&Interrupt::NEVER);
    let numbers: [i16; 4] = [0x0201, 0x0403, 0x0605, 0x0807];
    assert_eq!(
        tensor.run::<i16>(&meter, 1..3, &mut Vec::new()).unwrap(),
        &numbers[1..3]
    );
    assert_eq!(tensor.as_slice::<i16>().unwrap(), numbers);
}
