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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use kilim_core::tensor::AlignedBytes;
    use kilim_core::{Fact, Graph, Limits, Metadata, Tensor};
    use kilim_formats::{ModelFile, load_model};

    use crate::{OnnxModel, OnnxOptions, lower};

    /// The graph that is read of the file that is written of a graph.
    fn read_again(graph: &Graph) -> Graph {
        let graph = lower(graph).expect("operators of ONNX");
        let model = OnnxModel::new(&graph, &OnnxOptions::default()).expect("a model");
        let mut bytes = Vec::new();
        model.write(&mut bytes).expect("room");
        let bytes = Arc::new(AlignedBytes::copy_of(&bytes).expect("memory"));
        load_model(&ModelFile::new(bytes, "m"), &Limits::default()).expect("a model")
    }

    #[test]
    fn what_a_model_says_stays() {
        let mut graph = Graph::new("main");
        let one = Tensor::from_slice(&[], &[1.0f32]).expect("a number");
        let x = graph.add_input("x", Fact::of(&one));
        graph.outputs.push(x);
        let mut metadata = Metadata {
            name: "flowers".to_string(),
            description: "Names flowers".to_string(),
            producer: "tflite".to_string(),
            producer_version: "2.17".to_string(),
            domain: "org.example".to_string(),
            version: "12".to_string(),
            ..Metadata::default()
        };
        metadata.add("labels", "rose\ntulip").expect("room");
        metadata.add("empty", "").expect("room");
        graph.metadata = Arc::new(metadata.clone());
        let written = read_again(&graph);
        let mut expected = Metadata {
            producer: "kilim".to_string(),
            producer_version: env!("CARGO_PKG_VERSION").to_string(),
            ..metadata.clone()
        };
        let before = [
            ("original_producer", "tflite"),
            ("original_producer_version", "2.17"),
        ];
        let before = before.map(|(key, text)| (key.to_string(), text.to_string()));
        expected.entries.splice(0..0, before);
        assert_eq!(*written.metadata, expected);
        assert_eq!(*read_again(&written).metadata, expected, "written twice");

        // A version that is no number.
        metadata.version = "v1".to_string();
        graph.metadata = Arc::new(metadata);
        let written = read_again(&graph);
        assert_eq!(written.metadata.version, "");
        assert_eq!(written.metadata.entry("version"), Some("v1"));
    }
}
