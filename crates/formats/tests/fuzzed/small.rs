//! Models that are made, where the reference cases have none that are small.

use kilim_test_support::archive::Cases;

use crate::zip::zip;

/// Models of a format, by their names.
pub fn models(format: &str) -> Vec<(String, Vec<u8>)> {
    match format {
        "ggml" => vec![("floats".to_string(), whisper())],
        "nnpackage" => packages(),
        _ => Vec::new(),
    }
}

/// Packages with the models of `tests/references/circle.zip`.
fn packages() -> Vec<(String, Vec<u8>)> {
    const MANIFEST: &[u8] = br#"{"models": ["m"], "model-types": ["circle"]}"#;
    let cases = Cases::of("circle");
    let paths = cases.archive.entries().map(|(path, _)| path);
    let mut made = Vec::new();
    for path in paths.filter(|path| path.ends_with("model.circle")) {
        let files = [("metadata/MANIFEST", MANIFEST), ("m", cases.file(path))];
        made.push((path.replace('/', "-"), zip(&files)));
    }
    made
}

/// Width of the layers.
const WIDTH: u32 = 2;

/// A Whisper model of ggml with one layer in each half, as small as can be.
fn whisper() -> Vec<u8> {
    let (words, places, context, bands) = (3, 2, 2, 1);
    let mut file = b"lmgg".to_vec();
    let sizes = [words, places, WIDTH, 1, 1, context, WIDTH, 1, 1, bands, 0];
    let filters = [bands, 1, 0];
    let one_word = [1, 1];
    for number in sizes.into_iter().chain(filters).chain(one_word) {
        file.extend(number.to_le_bytes());
    }
    file.push(b'a');
    for (part, width) in [("conv1", bands), ("conv2", WIDTH)] {
        tensor(
            &mut file,
            &format!("encoder.{part}.weight"),
            &[3, width, WIDTH],
        );
        tensor(&mut file, &format!("encoder.{part}.bias"), &[1, WIDTH]);
    }
    tensor(&mut file, "encoder.positional_embedding", &[WIDTH, places]);
    tensor(&mut file, "decoder.positional_embedding", &[WIDTH, context]);
    tensor(&mut file, "decoder.token_embedding.weight", &[WIDTH, words]);
    for half in ["encoder", "decoder"] {
        let layer = format!("{half}.blocks.0");
        attention(&mut file, &format!("{layer}.attn"));
        if half == "decoder" {
            attention(&mut file, &format!("{layer}.cross_attn"));
        }
        norm(&mut file, &format!("{layer}.mlp_ln"));
        product(&mut file, &format!("{layer}.mlp.0"), [WIDTH, 4]);
        product(&mut file, &format!("{layer}.mlp.2"), [4, WIDTH]);
    }
    norm(&mut file, "encoder.ln_post");
    norm(&mut file, "decoder.ln");
    file
}

fn attention(file: &mut Vec<u8>, name: &str) {
    norm(file, &format!("{name}_ln"));
    for part in ["query", "value", "out"] {
        product(file, &format!("{name}.{part}"), [WIDTH, WIDTH]);
    }
    tensor(file, &format!("{name}.key.weight"), &[WIDTH, WIDTH]);
}

fn norm(file: &mut Vec<u8>, name: &str) {
    tensor(file, &format!("{name}.weight"), &[WIDTH]);
    tensor(file, &format!("{name}.bias"), &[WIDTH]);
}

/// A matrix of so many columns and rows, with a bias.
fn product(file: &mut Vec<u8>, name: &str, [columns, rows]: [u32; 2]) {
    tensor(file, &format!("{name}.weight"), &[columns, rows]);
    tensor(file, &format!("{name}.bias"), &[rows]);
}

/// A tensor of `float32`; the innermost dimension stands first.
fn tensor(file: &mut Vec<u8>, name: &str, shape: &[u32]) {
    let said = [shape.len() as u32, name.len() as u32, 0];
    for number in said.iter().chain(shape) {
        file.extend(number.to_le_bytes());
    }
    file.extend(name.as_bytes());
    file.extend(vec![0; 4 * shape.iter().product::<u32>() as usize]);
}
