use super::*;

fn texts(all: &[&str]) -> Tensor {
    let all: Vec<Arc<str>> = all.iter().map(|&t| t.into()).collect();
    Tensor::from_texts(&[all.len()], all).unwrap()
}

#[test]
fn strings_are_no_bytes() {
    let t = texts(&["a", "", "ü"]);
    assert_eq!((t.dtype(), t.len(), t.bytes()), (DType::String, 3, &[][..]));
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
    assert_eq!((t.dtype(), t.bytes()), (DType::Bool, &[1u8; 3][..]));
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
    }
}

#[test]
fn packed_and_back() {
    let t = Tensor::from_packed(DType::I4, &[3], &[0x8f, 0x07]).unwrap();
    assert_eq!(t.to_i64s().unwrap(), [-1, -8, 7]);
    assert_eq!(t.to_packed().as_ref(), [0x8f, 0x07]);
    let bits = t.reinterpreted(DType::U4).unwrap();
    assert_eq!(bits.to_i64s().unwrap(), [15, 8, 7]);
    assert_eq!(bits.reinterpreted(DType::I4).unwrap(), t);
    assert!(t.reinterpreted(DType::I8).is_err());
    assert!(Tensor::from_packed(DType::U2, &[5], &[0]).is_err());
    let t = Tensor::from_raw(DType::F8E5M2, &[2], &[0x3c, 0xc0]).unwrap();
    assert_eq!(t.to_f64s().unwrap(), [1.0, -2.0]);
}
