//! What a table may leave out, in the library of `tests/plugins/telling.c`, which says what is called.

use kilim::core::backend::{Grade, Half};
use kilim::{DType, ErrorCode, Placement};

use crate::*;

/// The folder of the library, compiled with `defines`, and the file that it writes.
fn telling(name: &str, defines: &[&str]) -> (PathBuf, PathBuf) {
    let folder = folder(&format!("telling-{name}"));
    let log = folder.join("log");
    let _ = std::fs::remove_file(&log);
    let mut defines: Vec<_> = defines.iter().map(ToString::to_string).collect();
    defines.push(format!("LOG=\"{}\"", log.display()));
    compile("tests/plugins/telling.c", &folder, "telling", &defines);
    (folder, log)
}

fn relu(size: &str) -> Vec<u8> {
    let nodes = [node("", "Relu", &["x"], &["y"])];
    model(&nodes, &[("x", &[size])], &[("y", &[size])])
}

#[test]
fn every_function_of_a_library_is_called_in_its_turn() {
    let (folder, log) = telling("calls", &[]);
    let mut options = options(&["telling"], &folder);
    options.context.threads = Some(3);
    let mut session = load(&relu("2"), options).unwrap();
    let told = || {
        let text = std::fs::read_to_string(&log).unwrap_or_default();
        let _ = std::fs::remove_file(&log);
        text.lines().map(str::to_string).collect::<Vec<_>>()
    };
    assert_eq!(told(), ["create_context 3", "prepare 1"]);
    let own = session.report().backends[0].planned_bytes;
    assert_eq!(own, size_of::<usize>() + 2 * 1024 * 4, "what `bytes` says");
    for _ in 0..2 {
        assert_eq!(run(&mut session, &[-1.0, 1.0]).unwrap(), [0.0, 1.0]);
        assert_eq!(told(), ["begin 0", "write 8", "run 0", "read 8", "end 0"]);
    }
    drop(session);
    assert_eq!(told(), ["release_executable 0", "release_context 0"]);
}

#[test]
fn a_context_that_is_made_must_be_released() {
    let (folder, _) = telling("unreleased", &["NO_RELEASE_CONTEXT"]);
    let error = load(&relu("2"), options(&["telling"], &folder));
    let error = error.err().unwrap();
    assert_eq!(error.code(), ErrorCode::NoBackend);
    assert!(
        error.message().contains("without `release_context`"),
        "{error}"
    );
}

#[test]
fn the_status_of_a_library_becomes_the_code_of_an_error() {
    for (status, code) in [
        ("KILIM_UNSUPPORTED", ErrorCode::Unsupported),
        ("KILIM_INVALID_VALUE", ErrorCode::InvalidValue),
        ("KILIM_LIMIT", ErrorCode::Limit),
        ("KILIM_DEVICE", ErrorCode::Device),
        ("12345", ErrorCode::Device),
    ] {
        let (folder, _) = telling(status, &[&format!("STATUS={status}")]);
        let error = load(&relu("2"), options(&["telling"], &folder));
        assert_eq!(error.err().unwrap().code(), code, "{status}");
    }
}

#[test]
fn a_library_describes_its_device() {
    let (folder, _) = telling("description", &[]);
    let session = load(&relu("2"), options(&["telling"], &folder)).unwrap();
    let said = session.backends()[0].describe();
    assert_eq!(said.device, "a talker");
    assert_eq!(said.grade(DType::F32), Some(Grade::Arithmetic));
    assert_eq!(said.grade(DType::F16), Some(Grade::Fast));
    assert_eq!(said.config.f16, Half::Kept);
    assert_eq!(said.alignment, 256);
    // Two tensors of 4096 bytes are more than the arena may have; one of 4100 is too large by itself.
    for (size, most) in [
        ("1024", "at most 6000 bytes"),
        ("1025", "at most 4096 bytes"),
    ] {
        let error = load(&relu(size), options(&["telling"], &folder));
        let error = error.err().unwrap();
        assert_eq!(error.code(), ErrorCode::Limit, "{error}");
        assert_eq!(error.expected(), Some(most), "{error}");
    }
}

#[test]
fn a_library_says_what_its_nodes_cost() {
    let at = |name: &str, defines: &[&str]| {
        let (folder, _) = telling(name, defines);
        let mut options = options(&["telling", "cpu"], &folder);
        options.placement = Placement::Priced;
        let session = load(&relu("500"), options).unwrap();
        at(&session, "Relu").unwrap()
    };
    assert_eq!(at("cheap", &[]), "telling");
    assert_eq!(at("slow", &["FLOPS_PER_SECOND=1.0"]), "cpu");
    assert_eq!(at("dear", &["FLOPS=1e15"]), "cpu");
    // What cannot be is not believed.
    assert_eq!(at("absurd", &["FLOPS=-1.0"]), "telling");
    assert_eq!(at("endless", &["FLOPS=__builtin_inf()"]), "telling");
}

#[test]
fn a_library_infers_shapes_from_what_is_known() {
    let (folder, _) = telling("values", &[]);
    let nodes = [
        Node {
            attributes: &[("value_int", Value::Int(7))],
            ..node("", "Constant", &[], &["shape"])
        },
        node("com.example", "Zeros", &["shape"], &["y"]),
    ];
    let model = model(&nodes, &[("x", &["1"])], &[("y", &["n"])]);
    let mut session = load(&model, options(&["telling"], &folder)).unwrap();
    let shape = session.outputs()[0].fact.concrete();
    assert_eq!(shape, Some(vec![7]));
    // What is known is computed while planning, but the library alone computes this.
    assert_eq!(at(&session, "Zeros").as_deref(), Some("telling"));
    assert_eq!(run(&mut session, &[1.0]).unwrap(), [0.0; 7]);
}
