//! Calling the binary, and files for it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use kilim_tests::onnx::{self, Node};

pub fn asset(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../assets")
        .join(name)
}

pub fn kilim(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_kilim"))
        .args(args)
        .output()
        .expect("the binary can be started")
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Runs with success and gives what it printed.
pub fn ok(args: &[&str]) -> String {
    let out = kilim(args);
    assert!(out.status.success(), "{args:?}: {}", text(&out.stderr));
    text(&out.stdout)
}

/// Runs, expects this exit code, and gives the error.
pub fn fails(code: i32, args: &[&str]) -> String {
    let out = kilim(args);
    assert_eq!(
        out.status.code(),
        Some(code),
        "{args:?}: {}",
        text(&out.stderr)
    );
    text(&out.stderr)
}

/// A folder of this test's own.
pub fn folder(name: &str) -> PathBuf {
    let dir = std::env::temp_dir().join(format!("kilim-cli-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&dir).expect("the folder can be made");
    dir
}

pub fn digits() -> String {
    asset("digits.onnx").display().to_string()
}

/// A `.npy` file of a [1, 1, 28, 28] float32 array.
pub fn npy(values: &[f32]) -> Vec<u8> {
    let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    array("<f4", false, "1, 1, 28, 28", &bytes)
}

/// A `.npy` file with these words in its header.
pub fn array(descr: &str, fortran: bool, shape: &str, bytes: &[u8]) -> Vec<u8> {
    let order = if fortran { "True" } else { "False" };
    let mut header =
        format!("{{'descr': '{descr}', 'fortran_order': {order}, 'shape': ({shape}), }}");
    while !(10 + header.len() + 1).is_multiple_of(64) {
        header.push(' ');
    }
    header.push('\n');
    let mut file = b"\x93NUMPY\x01\x00".to_vec();
    file.extend((header.len() as u16).to_le_bytes());
    file.extend(header.as_bytes());
    file.extend(bytes);
    file
}

pub fn image_as_npy(file: &Path) -> Vec<u8> {
    let gray = image::open(file)
        .expect("the picture can be read")
        .to_luma8();
    let values: Vec<f32> = gray.pixels().map(|p| f32::from(p.0[0]) / 255.0).collect();
    npy(&values)
}

/// An ONNX model of nodes `(operator, inputs, output)`, whose input `x` has these dimensions and whose
/// output is `y`.
pub fn model(nodes: &[(&str, &[&str], &str)], x: &[&str]) -> Vec<u8> {
    let outputs: Vec<[&str; 1]> = nodes.iter().map(|&(.., output)| [output]).collect();
    let nodes = nodes.iter().zip(&outputs);
    let nodes = nodes.map(|(&(op, inputs, _), outputs)| Node {
        domain: "",
        op,
        inputs,
        outputs,
        attributes: &[],
    });
    onnx::model(&nodes.collect::<Vec<_>>(), &[("x", x)], &[("y", x)])
}
