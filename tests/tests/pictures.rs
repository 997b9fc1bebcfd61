//! ImageDecoder on files that are no pictures, or no longer: each is an error with a code. What whole
//! files decode to, `references.rs` checks.

#![cfg(not(target_arch = "wasm32"))]

use std::collections::BTreeSet;

use kilim::formats::onnx::read_tensor;
use kilim::{BackendId, ErrorCode, LoadOptions, ModelSource, Result, RunOptions, Session, Tensor};
use kilim_test_support::archive::Cases;

fn cases() -> Cases {
    Cases::of("pictures")
}

/// The file that a case decodes.
fn file_of(case: &str) -> Vec<u8> {
    let cases = cases();
    let input = cases.file(&format!("{case}/test_data_set_0/input_0.pb"));
    let (_, file) = read_tensor(input).expect("a tensor");
    file.as_slice::<u8>().expect("bytes").to_vec()
}

fn session() -> Session {
    let options = LoadOptions {
        backends: vec![BackendId::from("cpu")],
        ..LoadOptions::default()
    };
    let model = ModelSource::from(cases().file("png/model.onnx").to_vec());
    pollster::block_on(kilim::load(model, options)).expect("the model loads")
}

/// The shape of what a file decodes to.
fn decode(session: &mut Session, file: &[u8]) -> Result<Vec<usize>> {
    let file = Tensor::from_slice(&[file.len()], file)?;
    let options = RunOptions::default();
    let outputs = pollster::block_on(session.run(&[("file", file)], &options))?;
    Ok(outputs[0].1.shape().to_vec())
}

fn code(session: &mut Session, file: &[u8]) -> Option<ErrorCode> {
    decode(session, file).err().map(|e| e.code())
}

/// The bytes after `mark`, and `skip` more, replaced.
fn patched(case: &str, mark: &[u8], skip: usize, with: &[u8]) -> Vec<u8> {
    let mut file = file_of(case);
    let found = file.windows(mark.len()).position(|w| w == mark);
    let at = found.expect("the mark") + mark.len() + skip;
    file[at..at + with.len()].copy_from_slice(with);
    file
}

#[test]
fn garbled_files_are_errors() {
    let mut session = session();
    let mut state = 1u64;
    let mut random = |below: usize| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(99);
        (state >> 33) as usize % below
    };
    let cases = cases();
    let names = cases
        .archive
        .entries()
        .filter_map(|(n, _)| n.split_once('/'));
    let names: BTreeSet<&str> = names.map(|(case, _)| case).collect();
    let mut refused = 0;
    for case in names {
        let file = file_of(case);
        for round in 0..60 {
            let mut file = file.clone();
            if round % 3 == 0 {
                file.truncate(random(file.len()));
            } else {
                for _ in 0..=random(4) {
                    let at = random(file.len());
                    file[at] = random(256) as u8;
                }
            }
            match code(&mut session, &file) {
                None => {}
                Some(ErrorCode::InvalidValue | ErrorCode::Unsupported | ErrorCode::Limit) => {
                    refused += 1;
                }
                Some(other) => panic!("{case:?}, round {round}: {other:?}"),
            }
        }
    }
    assert!(refused > 500, "only {refused} were refused");
    let whole = decode(&mut session, &file_of("png"));
    assert_eq!(whole.expect("the session lives on"), [18, 21, 3]);
}

#[test]
fn no_picture_at_all() {
    let mut session = session();
    for file in [&b""[..], b"GIF89a", b"no picture", &[0; 64]] {
        assert_eq!(code(&mut session, file), Some(ErrorCode::Unsupported));
    }
    let half = file_of("jpeg_restart");
    for file in [&half[..2], &half[..half.len() / 4]] {
        assert!(decode(&mut session, file).is_err());
    }
}

/// Headers that promise more than any memory holds.
#[test]
fn giants_are_refused() {
    let mut session = session();
    let giants = [
        // After the frame's marker its length and precision, then height and width.
        patched("jpeg_bgr", &[0xff, 0xc0], 3, &[0xff; 4]),
        patched("bmp", b"BM", 16, &[0xff, 0xff, 0, 0, 0xff, 0xff, 0, 0]),
        b"P6\n60000 60000\n255\nabc".to_vec(),
    ];
    for file in giants {
        assert_eq!(code(&mut session, &file), Some(ErrorCode::Limit));
    }
    // After SIZ its length and the capabilities: a picture of 65535 tiles a side.
    let size = [0, 0, 0xff, 0xff, 0, 0, 0xff, 0xff];
    let tiles = [0, 0, 0, 1, 0, 0, 0, 1];
    let place = [size, [0; 8], tiles].concat();
    let file = patched("jpeg2000", &[0xff, 0x51], 4, &place);
    assert_eq!(code(&mut session, &file), Some(ErrorCode::InvalidValue));
}
