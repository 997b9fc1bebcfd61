//! What a file says of itself, as fields of `ModelProto`. The name of the model is that of its graph.

use kilim_core::Metadata;

use crate::proto::Message;

/// The program that writes the file.
const PRODUCER: &str = "kilim";

/// Writes what a model says of itself, with Kilim as the producer. A version that is no number, and the producer of the file that the model was
/// read from, are entries.
pub fn write(metadata: &Metadata, model: &mut Message) {
    model.text(2, PRODUCER);
    model.text(3, env!("CARGO_PKG_VERSION"));
    model.text(4, &metadata.domain);
    let version = metadata.version.parse().ok().filter(|&n: &i64| n != 0);
    if let Some(version) = version {
        model.int(5, version);
    }
    model.text(6, &metadata.description);
    let mut entry = |key: &str, text: &str| {
        let mut entry = Message::default();
        entry.text(1, key);
        entry.text(2, text);
        model.message(14, entry);
    };
    if metadata.producer != PRODUCER && !metadata.producer.is_empty() {
        entry("original_producer", &metadata.producer);
        if !metadata.producer_version.is_empty() {
            entry("original_producer_version", &metadata.producer_version);
        }
    }
    if version.is_none() && !metadata.version.is_empty() {
        entry("version", &metadata.version);
    }
    for (key, text) in &metadata.entries {
        entry(key, text);
    }
}
