use kilim_core::error::ErrorCode;

use super::{import, import_with, model, refused};

const CASES: [&str; 8] = [
    "network",
    "halves",
    "int4_blocks",
    "encodings",
    "gru_1",
    "branch_1",
    "shapes",
    "arrangement",
];

#[test]
fn cut_off_models_are_errors() {
    for case in CASES {
        let bytes = model(case);
        for len in (0..bytes.len()).step_by(bytes.len() / 150 + 1) {
            // A file whose last bytes only fill it up may be whole without them.
            let made = import(&bytes[..len]);
            assert!(made.is_err() || len + 16 > bytes.len(), "{case} {len}");
        }
    }
}

#[test]
fn overwritten_models_are_graphs_or_errors() {
    for case in CASES {
        let mut bytes = model(case);
        for at in (0..bytes.len()).step_by(bytes.len() / 400 + 1) {
            for value in [0, 1, 0x7f, 0x80, 0xff] {
                let old = std::mem::replace(&mut bytes[at], value);
                let _ = import_with(&bytes, &[], true);
                bytes[at] = old;
            }
        }
    }
}

#[test]
fn a_model_that_is_cut_off_is_still_one_of_mnn() {
    let bytes = model("network");
    let error = refused(import(&bytes[..bytes.len() / 2]));
    assert_eq!(error.code(), ErrorCode::InvalidModel, "{error}");
}
