//! The accuracy of the embedded model on samples that its training never saw.

use std::io::Read;
use std::path::Path;

use kilim::{BackendId, LoadOptions, Placement, RunOptions, Tensor};

/// A share of the samples, below what the training script reports so that only a broken model or
/// kernel falls under it.
const FLOOR: f64 = 0.97;

fn array(name: &str) -> Vec<u8> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../assets/digits-heldout.npz");
    let file = std::fs::File::open(file).expect("the held-out samples");
    let mut archive = zip::ZipArchive::new(file).expect("an archive");
    let mut entry = archive
        .by_name(&format!("{name}.npy"))
        .expect("it is there");
    let mut bytes = Vec::new();
    entry.read_to_end(&mut bytes).expect("it can be read");
    // Version 1: the length of the header stands in two bytes after eight others.
    let header = 10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    bytes.split_off(header)
}

/// The share of the samples that the model gets right on the first of these backends that takes each node.
fn accuracy(backends: &[&str]) -> f64 {
    let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../assets/digits.onnx");
    let mut options = LoadOptions {
        backends: backends.iter().map(|&id| BackendId::from(id)).collect(),
        ..LoadOptions::default()
    };
    options.placement = Placement::Fixed;
    let mut session = pollster::block_on(kilim::load(model.as_path(), options)).expect("it loads");
    let labels = array("labels");
    let pixels: Vec<f32> = array("images")
        .iter()
        .map(|&p| f32::from(p) / 255.0)
        .collect();
    let images = Tensor::from_slice(&[labels.len(), 1, 28, 28], &pixels).expect("28 by 28 pixels");
    let (inputs, options) = ([("image", images)], RunOptions::default());
    let outputs = pollster::block_on(session.run(&inputs, &options)).expect("it runs");
    let nodes = session.report().nodes;
    let first = nodes.iter().filter(|n| n.backend == backends[0]).count();
    println!("{first} of {} nodes on {}", nodes.len(), backends[0]);
    assert!(first > 0, "nothing runs on {}", backends[0]);
    let scores = outputs[0].1.as_slice::<f32>().expect("float32");
    let right = scores
        .chunks(10)
        .zip(&labels)
        .filter(|(s, l)| {
            let best = (0..10).max_by(|&a, &b| s[a].total_cmp(&s[b]));
            best == Some(usize::from(**l))
        })
        .count();
    println!("{right} of {} right", labels.len());
    right as f64 / labels.len() as f64
}

#[test]
fn the_embedded_model_knows_digits_it_has_not_seen() {
    let accuracy = accuracy(&["cpu"]);
    assert!(accuracy >= FLOOR, "{accuracy}");
}

/// Where the ARM Compute Library is installed, or named.
#[cfg(target_arch = "aarch64")]
#[test]
fn the_embedded_model_knows_digits_on_acl_neon() {
    let id = BackendId::from("acl_neon");
    let opened = pollster::block_on(kilim::Runtime::shared().backend(&id));
    match opened {
        Err(e) if std::env::var_os("KILIM_ACL").is_none() => {
            return kilim_test_support::skip(e);
        }
        opened => drop(opened.expect("the library that is named can be used")),
    }
    let accuracy = accuracy(&["acl_neon", "cpu"]);
    assert!(accuracy >= FLOOR, "{accuracy}");
}
