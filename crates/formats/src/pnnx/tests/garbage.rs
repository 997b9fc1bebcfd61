use super::{file, import_with};
use crate::garbage::damaged;

#[test]
fn truncated_and_garbled_networks_are_errors() {
    for case in [
        "parts",
        "sampling",
        "recurrent_gru_1_both_batch",
        "expressions",
        "open",
    ] {
        let weights = file(case, "model.pnnx.bin");
        damaged(&file(case, "model.pnnx.param"), 6, |network| {
            let _ = import_with(network, &[("m.pnnx.bin", &weights)]);
        });
    }
}

#[test]
fn truncated_and_garbled_archives_are_errors() {
    for case in ["products", "convolutions_old"] {
        let network = file(case, "model.pnnx.param");
        let weights = file(case, "model.pnnx.bin");
        damaged(&weights, 16, |weights| {
            let _ = import_with(&network, &[("m.pnnx.bin", weights)]);
        });
        for len in (0..weights.len()).step_by(37) {
            let cut = import_with(&network, &[("m.pnnx.bin", &weights[..len])]);
            assert!(cut.is_err(), "{len}");
        }
    }
}
