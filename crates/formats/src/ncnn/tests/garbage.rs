use super::{file, import_with};

/// Reads `bytes` cut at many places, and with many bytes overwritten. What comes of it is a graph or an error.
fn damaged(bytes: &[u8], mut read: impl FnMut(&[u8])) {
    for len in (0..bytes.len()).step_by(2) {
        read(&bytes[..len]);
    }
    let mut bytes = bytes.to_vec();
    for at in (0..bytes.len()).step_by(4) {
        for value in [0, 0xff, !bytes[at], b'-', b'9', b' ', b'='] {
            let old = std::mem::replace(&mut bytes[at], value);
            read(&bytes);
            bytes[at] = old;
        }
    }
}

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
        damaged(&file(case, "model.param"), |network| {
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
