//! Bad files and wrong use: typed errors, and the exit codes that scripts go by.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use image::ImageEncoder;

use crate::support::*;

#[test]
fn bad_files_are_typed_errors_with_their_exit_code() {
    let dir = folder("bad");
    let digit = std::fs::read(asset("digits.onnx")).expect("the embedded model");
    let write = |name: &str, bytes: &[u8]| {
        let file = dir.join(name);
        std::fs::write(&file, bytes).expect("the file can be written");
        file.display().to_string()
    };
    let cpu = |file: &str| fails(3, &["run", file, "--backends", "cpu"]);
    assert!(cpu(&write("garbage.onnx", &[0x5a; 300])).contains("UNKNOWN_FORMAT"));
    assert!(cpu(&write("empty.onnx", &[])).contains("UNKNOWN_FORMAT"));
    assert!(cpu(&write("cut.onnx", &digit[..digit.len() / 2])).contains("INVALID_MODEL"));
    let picture = format!("image={}", write("not-a-picture.png", b"hello"));
    let run = ["run", &digits(), "--backends", "cpu", "--input", &picture];
    assert!(fails(4, &run).contains("IO: "));
    assert!(fails(4, &["run", "there-is-none.onnx", "--backends", "cpu"]).contains("IO: "));
    let cycle: [(&str, &[&str], &str); 3] = [
        ("Add", &["x", "b"], "a"),
        ("Relu", &["a"], "b"),
        ("Relu", &["b"], "y"),
    ];
    assert!(cpu(&write("cycle.onnx", &model(&cycle, &["2"]))).contains("INVALID_GRAPH"));
    std::fs::remove_dir_all(dir).expect("the folder can be removed");
}

#[test]
fn wrong_use_exits_with_2() {
    fails(2, &["run"]);
    let none = [
        "run",
        &digits(),
        "--backends",
        "cpu",
        "--input",
        "nothing=random",
    ];
    assert!(fails(2, &none).contains("has no input `nothing`"));
    let unknown = fails(3, &["run", &digits(), "--backends", "abacus"]);
    assert!(
        unknown.contains("NO_BACKEND") && unknown.contains("abacus"),
        "{unknown}"
    );
}

#[test]
fn a_model_keeps_to_the_limits_that_are_given() {
    let run = |limits: &str| -> Vec<String> {
        let words = ["run", &digits(), "--backends", "cpu", "--limits", limits];
        words.map(String::from).to_vec()
    };
    let words = |limits: &str, code: i32| {
        let run = run(limits);
        let run: Vec<&str> = run.iter().map(String::as_str).collect();
        fails(code, &run)
    };
    let few = words("strict,nodes=1", 3);
    assert!(few.contains("LIMIT") && few.contains("`nodes`"), "{few}");
    assert!(words("noodles=1", 2).contains("there is no limit `noodles`"));
    assert!(words("nodes", 2).contains("NAME=NUMBER"));
}

#[test]
fn inputs_that_no_machine_can_hold_are_typed_errors() {
    let dir = folder("large");
    let write = |name: &str, shape: &[&str]| {
        let file = dir.join(name);
        let bytes = model(&[("Neg", &["x"], "y")], shape);
        std::fs::write(&file, bytes).expect("the file can be written");
        file.display().to_string()
    };
    let million = "1048576";
    let random = write("random.onnx", &[million, million, "64"]);
    for command in ["run", "bench", "verify"] {
        let error = fails(3, &[command, &random, "--backends", "cpu"]);
        assert!(error.contains("LIMIT"), "{command}: {error}");
    }
    let picture = write("picture.onnx", &["1", "3", million, million]);
    let input = format!("x={}", asset("digit-3.png").display());
    let error = fails(3, &["run", &picture, "--backends", "cpu", "-i", &input]);
    assert!(error.contains("LIMIT"), "{error}");
    std::fs::remove_dir_all(dir).expect("the folder can be removed");
}

#[test]
fn arrays_are_read_in_any_order_of_bytes_and_axes() {
    let dir = folder("arrays");
    let neg = dir.join("neg.onnx");
    std::fs::write(&neg, model(&[("Neg", &["x"], "y")], &["2", "3"]))
        .expect("the file can be written");
    let neg = neg.display().to_string();
    let file = |name: &str, bytes: Vec<u8>| {
        std::fs::write(dir.join(name), bytes).expect("the file can be written");
        dir.join(name).display().to_string()
    };
    let run = |input: &str| kilim(&["run", &neg, "--backends", "cpu", "-i", input]);
    let columns = [1.0f32, 4.0, 2.0, 5.0, 3.0, 6.0];
    let little: Vec<u8> = columns.iter().flat_map(|v| v.to_le_bytes()).collect();
    let big: Vec<u8> = (1..7).flat_map(|v| (v as f32).to_be_bytes()).collect();
    let fortran = file("fortran.npy", array("<f4", true, "2, 3", &little));
    let big = file("big.npy", array(">f4", false, "2, 3", &big));
    for input in [fortran, big] {
        let out = text(&run(&input).stdout);
        let want = "[-1.000000, -2.000000, -3.000000, -4.000000, -5.000000, -6.000000]";
        assert!(out.contains(want), "{input}: {out}");
    }
    let refused = |name: &str, bytes: Vec<u8>, code: i32, word: &str| {
        let out = run(&file(name, bytes));
        let error = text(&out.stderr);
        assert_eq!(out.status.code(), Some(code), "{name}: {error}");
        assert!(error.contains(word), "{name}: {error}");
    };
    refused(
        "cut.npy",
        array("<f4", false, "2, 3", &little[..9]),
        4,
        "IO: the array ends too early",
    );
    refused(
        "huge.npy",
        array("<f4", false, "2, 999999999999", &little),
        4,
        "IO: ",
    );
    refused("garbage.npy", b"no array at all".to_vec(), 4, "IO: ");
    refused(
        "long.npy",
        array("<i8", false, "2, 3", &[0; 48]),
        3,
        "DTYPE",
    );
    refused(
        "square.npy",
        array("<f4", false, "3, 2", &little),
        3,
        "SHAPE",
    );
    refused(
        "object.npy",
        array("|O", false, "2, 3", &little),
        3,
        "DTYPE",
    );
    std::fs::remove_dir_all(dir).expect("the folder can be removed");
}

/// Files that promise more than they hold, or more than is allowed: an error, at once and without the memory.
#[cfg(target_os = "linux")]
#[test]
fn data_that_is_too_large_is_an_error() {
    let dir = folder("large-data");
    let file = |name: &str, bytes: &[u8]| {
        std::fs::write(dir.join(name), bytes).expect("the file can be written");
        dir.join(name).display().to_string()
    };
    let neg = file(
        "neg.onnx",
        &model(&[("Neg", &["x"], "y")], &["n", "3", "h", "w"]),
    );
    let refused = |input: &str, more: &[&str], code: i32, word: &str| {
        // In kB, for everything that the program maps, its code and stacks among it.
        let script = r#"ulimit -v 2500000; exec "$0" "$@""#;
        let start = std::time::Instant::now();
        let out = Command::new("sh")
            .args(["-c", script, env!("CARGO_BIN_EXE_kilim"), "run", &neg])
            .args(["--backends", "cpu", "-i", input])
            .args(more)
            .output()
            .expect("a shell");
        let error = text(&out.stderr);
        assert_eq!(out.status.code(), Some(code), "{input}: {error}");
        assert!(error.contains(word), "{input}: {error}");
        assert!(start.elapsed().as_secs() < 10, "{input}");
    };
    for descr in ["<U0", "|S0"] {
        let texts = file("texts.npy", &array(descr, false, "2000000000,", &[]));
        refused(&texts, &[], 3, "LIMIT: the array is too large");
        // What is allowed is not there all the same.
        let all = ["--max-data-bytes", "1000000000000"];
        refused(&texts, &all, 3, "LIMIT: the machine has no memory");
    }
    let nested = format!("{}'f4'{}", "[".repeat(20_000), "]".repeat(20_000));
    let nested = format!("{{'descr': {nested}, 'fortran_order': False, 'shape': (2,), }}");
    let nested = file("nested.npy", &array_of(&nested));
    refused(&nested, &[], 3, "DTYPE: records");
    let zeros = file("zeros.npz", &bomb(1 << 30));
    refused(
        &zeros,
        &["--max-data-bytes", "100000000"],
        3,
        "LIMIT: the array is too large",
    );
    let picture = file("huge.png", &blank(13_000));
    refused(
        &picture,
        &[],
        3,
        "LIMIT: the input that the picture becomes is too large",
    );
    let few = ["--max-data-bytes", "1000000"];
    refused(&picture, &few, 3, "LIMIT: the picture is too large");
    std::fs::remove_dir_all(dir).expect("the folder can be removed");
}

/// A `.npy` file with this header, and no elements.
fn array_of(words: &str) -> Vec<u8> {
    let mut file = b"\x93NUMPY\x01\x00".to_vec();
    file.extend((words.len() as u16).to_le_bytes());
    file.extend(words.as_bytes());
    file
}

/// An archive with an array of so many bytes, all of them zero.
fn bomb(bytes: usize) -> Vec<u8> {
    let mut archive = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let options = zip::write::SimpleFileOptions::default();
    archive.start_file("x.npy", options).expect("an entry");
    let shape = format!("{},", bytes / 4);
    archive
        .write_all(&array("<f4", false, &shape, &[]))
        .expect("its header");
    let zeros = vec![0; 1 << 20];
    for _ in 0..bytes / zeros.len() {
        archive.write_all(&zeros).expect("its elements");
    }
    archive.finish().expect("an archive").into_inner()
}

/// A black picture, `side` pixels wide and high.
fn blank(side: u32) -> Vec<u8> {
    let mut file = Vec::new();
    let encoder = image::codecs::png::PngEncoder::new_with_quality(
        &mut file,
        image::codecs::png::CompressionType::Fast,
        image::codecs::png::FilterType::NoFilter,
    );
    let pixels = vec![0; side as usize * side as usize];
    encoder
        .write_image(&pixels, side, side, image::ExtendedColorType::L8)
        .expect("a picture");
    file
}

#[test]
fn options_that_cannot_be_are_refused_before_anything_runs() {
    let digits = digits();
    for (code, more) in [
        (2, &["--timeout", "nan"][..]),
        (2, &["--runs", "0"]),
        (2, &["--save", "out.npy"]),
        (2, &["-i", "image=random", "-i", "image=random"]),
        (2, &["--dim", "N=many"]),
        (2, &["--last-only", "scores"]),
        (3, &["--last-only", "nothing=0"]),
        (3, &["--dim", "batch=1"]),
    ] {
        let run = [&["run", &digits, "--backends", "cpu"][..], more].concat();
        fails(code, &run);
    }
    fails(2, &["bench", &digits, "--runs", "0"]);
    fails(2, &["verify", &digits, "--tolerance", "nan"]);
    let nowhere = folder("options").join("none").join("plan.svg");
    let nowhere = nowhere.display().to_string();
    fails(
        4,
        &[
            "inspect",
            &digits,
            "--backends",
            "cpu",
            "--memory",
            &nowhere,
        ],
    );
}

/// What `kilim … | head -1` does.
#[cfg(unix)]
#[test]
fn a_reader_that_goes_away_ends_it_quietly() {
    let dir = folder("pipe");
    let nodes: Vec<String> = (0..2000).map(|i| format!("v{i}")).collect();
    let mut chain: Vec<(&str, &[&str], &str)> = Vec::new();
    let inputs: Vec<[&str; 1]> = std::iter::once("x")
        .chain(nodes.iter().map(String::as_str))
        .map(|name| [name])
        .collect();
    for (input, output) in inputs.iter().zip(&nodes) {
        chain.push(("Sin", input, output));
    }
    chain.push(("Sin", &inputs[2000], "y"));
    let file = dir.join("chain.onnx");
    std::fs::write(&file, model(&chain, &["2"])).expect("the file can be written");
    let mut child = Command::new(env!("CARGO_BIN_EXE_kilim"))
        .args(["inspect", "--backends", "cpu", "--json"])
        .arg(&file)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary can be started");
    let mut first = String::new();
    let mut reader = BufReader::new(child.stdout.take().expect("a pipe"));
    reader.read_line(&mut first).expect("a line");
    drop(reader);
    let out = child.wait_with_output().expect("it ends");
    assert_eq!(out.status.code(), Some(141), "{}", text(&out.stderr));
    assert_eq!(text(&out.stderr), "");
    std::fs::remove_dir_all(dir).expect("the folder can be removed");
}
