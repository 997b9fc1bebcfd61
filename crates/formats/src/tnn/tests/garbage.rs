use super::{file, import_with};
use crate::garbage::damaged;

#[test]
fn truncated_and_garbled_networks_are_errors() {
    for case in ["other_axes", "parts", "sampling", "recurrent"] {
        let weights = file(case, "model.tnnmodel");
        damaged(&file(case, "model.tnnproto"), 4, |network| {
            let _ = import_with(network, &[("m.tnnmodel", &weights)]);
        });
    }
}

#[test]
fn truncated_and_garbled_weights_are_errors() {
    for case in ["other_axes", "norms"] {
        let network = file(case, "model.tnnproto");
        damaged(&file(case, "model.tnnmodel"), 8, |weights| {
            let _ = import_with(&network, &[("m.tnnmodel", weights)]);
        });
    }
    let network = file("convolutions", "model.tnnproto");
    let weights = file("convolutions", "model.tnnmodel");
    for len in (0..weights.len()).step_by(37) {
        assert!(
            import_with(&network, &[("m.tnnmodel", &weights[..len])]).is_err(),
            "{len}"
        );
    }
}
