use super::{file, import_with};
use crate::garbage::damaged;

#[test]
fn truncated_and_garbled_networks_are_errors() {
    for case in [
        "network",
        "network_binary",
        "conv_int8",
        "conv_table",
        "paddings",
        "crops_by_others",
        "shuffles",
        "sampling",
    ] {
        let weights = file(case, "model.bin");
        damaged(&file(case, "model.param"), 4, |network| {
            let _ = import_with(network, &[("m.bin", &weights)]);
        });
    }
}

#[test]
fn garbled_weights_are_errors() {
    let network = file("network", "model.param");
    let weights = file("network", "model.bin");
    for len in (0..weights.len()).step_by(7) {
        assert!(import_with(&network, &[("m.bin", &weights[..len])]).is_err());
    }
    for at in 0..4 {
        let mut weights = weights.clone();
        weights[at] ^= 0xff;
        let _ = import_with(&network, &[("m.bin", &weights)]);
    }
}
