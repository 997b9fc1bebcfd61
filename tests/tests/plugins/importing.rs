//! Importers in libraries: the samples, and the library of `tests/plugins/importing.c`, which does what a library may do and what it
//! must not.

use kilim::{Error, ErrorCode};
use kilim_test_support::documents::blocks;

use crate::*;

const CHAIN: &str = "chain 1\nscale -0.5\nrelu\n";

/// The folder with the sample in C.
fn chain_in_c() -> PathBuf {
    let folder = folder("importing-chain");
    let library = folder.join(importer_file_name("chain"));
    compile_to("examples/plugin-c/chain.c", &library, &[]);
    folder
}

/// The folder with `tests/plugins/importing.c`, as these macros have it.
fn importing(name: &str, defines: &[&str]) -> PathBuf {
    let folder = folder(&format!("importing-{name}"));
    let defines: Vec<String> = defines.iter().map(ToString::to_string).collect();
    let library = folder.join(importer_file_name("mine"));
    compile_to("tests/plugins/importing.c", &library, &defines);
    folder
}

/// The library that does this.
fn case(case: &str) -> PathBuf {
    importing(case, &[&format!("CASE={case}")])
}

fn failed<T>(result: Result<T>) -> Error {
    result.err().expect("it cannot be")
}

/// What becomes of a file that begins with `mine`.
fn opened(folder: &Path) -> Result<Session> {
    load(b"mine", options(&["cpu"], folder))
}

#[test]
fn a_library_reads_a_format_of_its_own() {
    for folder in [chain_in_c(), built("importer_chain", "plugin-rust", "")] {
        // A file, by its content; and its bytes.
        let file = folder.join("model.mine");
        std::fs::write(&file, CHAIN).unwrap();
        let runtime = Runtime::default();
        let by_path = runtime.load(file.as_path(), options(&["cpu"], &folder));
        let sessions = [
            pollster::block_on(by_path),
            load(CHAIN.as_bytes(), options(&["cpu"], &folder)),
        ];
        for session in sessions {
            let mut session = session.unwrap();
            assert_eq!(
                run(&mut session, &[1.0, -2.0, 4.0]).unwrap(),
                [0.0, 1.0, 0.0]
            );
            assert_eq!(session.outputs()[0].name, "y");
        }

        let load = |text: &str| load(text.as_bytes(), options(&["cpu"], &folder));
        let error = failed(load("chain 1\nscale much\n"));
        assert_eq!(error.code(), ErrorCode::InvalidModel, "{error}");
        assert_eq!(
            error.message(),
            "the importer `chain`: line 2 has a factor that is no number"
        );
        let error = failed(load("chain 1\nrelu\nbend 3\n"));
        assert_eq!(error.code(), ErrorCode::Unsupported, "{error}");
        assert_eq!(failed(load("chain 2\n")).code(), ErrorCode::UnknownFormat);
    }
}

#[test]
fn a_library_is_opened_for_files_that_nobody_else_knows() {
    // It would fail.
    let folder = importing("late", &["VERSION=7"]);
    let library = folder.join(importer_file_name("other"));
    let _ = std::fs::remove_file(&library);
    let relu = model(
        &[node("", "Relu", &["x"], &["y"])],
        &[("x", &["2"])],
        &[("y", &["2"])],
    );
    assert!(load(&relu, options(&["cpu"], &folder)).is_ok());
    assert_eq!(failed(opened(&folder)).code(), ErrorCode::InvalidValue);

    // Another library knows the file.
    compile_to(
        "tests/plugins/importing.c",
        &library,
        &["CASE=NEWER".into()],
    );
    assert!(opened(&folder).is_ok());
}

#[test]
fn libraries_are_let_go() {
    let folder = chain_in_c();
    let runtime = Runtime::default();
    let load = || {
        let loading = runtime.load(CHAIN.as_bytes(), options(&["cpu"], &folder));
        pollster::block_on(loading).unwrap()
    };
    let mut session = load();
    runtime.close_libraries();
    assert_eq!(run(&mut session, &[-2.0]).unwrap(), [1.0]);
    assert_eq!(run(&mut load(), &[-2.0]).unwrap(), [1.0]);
}

#[test]
fn weights_lie_in_the_file_or_beside_it() {
    let mut file = b"mine----".to_vec();
    let weights: Vec<u8> = [0.5f32, -1.0]
        .iter()
        .flat_map(|x| x.to_le_bytes())
        .collect();
    file.extend(&weights);
    let check = |folder: &Path| {
        let path = folder.join("model.mine");
        std::fs::write(&path, &file).unwrap();
        let loading = Runtime::default();
        let loading = pollster::block_on(loading.load(path.as_path(), options(&["cpu"], folder)));
        let mut session = loading?;
        let x = Tensor::from_slice(&[2, 2], &[1.0f32, 2.0, 3.0, 4.0])?;
        let out = pollster::block_on(session.run(&[("x", x)], &RunOptions::default()))?;
        assert_eq!(out[0].1.as_slice::<f32>()?, [1.5, 1.0, 3.5, 3.0]);
        Ok(())
    };
    check(&case("WEIGHTS")).unwrap();
    let error = failed(opened(&case("WEIGHTS")));
    assert_eq!(error.code(), ErrorCode::InvalidModel, "{error}");

    let folder = case("BESIDE");
    let _ = std::fs::remove_file(folder.join("w.bin"));
    let error = failed(check(&folder));
    assert_eq!(error.code(), ErrorCode::Io, "{error}");
    assert!(error.message().contains("the importer `mine`"), "{error}");
    std::fs::write(folder.join("w.bin"), &weights).unwrap();
    check(&folder).unwrap();
    let error = failed(opened(&case("OUTSIDE")));
    assert_eq!(error.code(), ErrorCode::InvalidModel, "{error}");
    assert!(error.message().contains("../w.bin"), "{error}");
}

#[test]
fn a_library_may_give_a_file_of_another_format() {
    let inner = model(
        &[node("", "Neg", &["x"], &["y"])],
        &[("x", &["2"])],
        &[("y", &["2"])],
    );
    let file = [b"mine----".as_slice(), &inner].concat();
    let mut session = load(&file, options(&["cpu"], &case("WRAPPED"))).unwrap();
    assert_eq!(run(&mut session, &[1.0, -2.0]).unwrap(), [-1.0, 2.0]);
    let error = failed(load(b"mine----mine", options(&["cpu"], &case("WRAPPED"))));
    assert_eq!(error.code(), ErrorCode::UnknownFormat, "{error}");
    assert!(error.message().contains("the importer `mine`"), "{error}");
    let error = failed(load(&file, options(&["cpu"], &case("TWO_MODELS"))));
    assert_eq!(error.code(), ErrorCode::InvalidModel, "{error}");
}

/// Bodies, one of them in another, and a tensor as an attribute.
#[test]
fn a_library_may_give_control_flow() {
    let libraries = [
        (case("CONTROL"), b"mine".as_slice()),
        (built("importer_control", "plugin-rust", ""), b"control"),
    ];
    for (folder, file) in libraries {
        let mut session = load(file, options(&["cpu"], &folder)).unwrap();
        for (c, want) in [(true, [2.0, -4.0]), (false, [4.0, -8.0])] {
            let x = Tensor::from_slice(&[2], &[1.0f32, -2.0]).unwrap();
            let c = Tensor::from_bools(&[], &[c]).unwrap();
            let inputs = [("x", x), ("c", c)];
            let out = pollster::block_on(session.run(&inputs, &RunOptions::default())).unwrap();
            assert_eq!(out[0].1.as_slice::<f32>().unwrap(), want);
        }
    }
}

#[test]
fn a_library_may_say_what_the_file_says_of_itself() {
    let session = opened(&case("DESCRIBED")).unwrap();
    let metadata = session.metadata();
    let fields: Vec<_> = metadata.fields().collect();
    let said = [
        ("name", "mine"),
        ("description", "a sample"),
        ("producer", "by hand"),
        ("version", "7"),
    ];
    assert_eq!(fields, said, "what was said before counts for nothing");
    let entries = [("classes", "cat, dog"), ("note", ""), ("classes", "bird")];
    let entries = entries.map(|(key, text)| (key.to_string(), text.to_string()));
    assert_eq!(metadata.entries, entries);
    let silent = opened(&case("NEWER")).unwrap();
    assert_eq!(silent.metadata(), &kilim::Metadata::default());

    // In a library in Rust, and while a body has begun.
    let folder = built("importer_control", "plugin-rust", "");
    let session = load(b"control", options(&["cpu"], &folder)).unwrap();
    let metadata = session.metadata();
    assert_eq!(metadata.producer, "control");
    assert_eq!(metadata.entry("loop"), Some("three times"));
}

#[test]
fn a_library_that_lies_gives_a_typed_error() {
    let cases = [
        (
            "TWICE",
            ErrorCode::InvalidModel,
            "two values are called `x`",
        ),
        ("UNKNOWN", ErrorCode::Unsupported, "ai.onnx::Twist"),
        ("DANGLING", ErrorCode::InvalidGraph, "`nothing`"),
        ("CYCLE", ErrorCode::InvalidGraph, "cycle"),
        ("NAMELESS", ErrorCode::InvalidModel, "no operator"),
        ("OVERFLOWING", ErrorCode::Limit, "too large"),
        ("NEGATIVE", ErrorCode::InvalidModel, "is -2"),
        ("NO_SHAPE", ErrorCode::InvalidModel, "a shape is missing"),
        ("RANK", ErrorCode::InvalidModel, "a rank is negative"),
        ("SHORT", ErrorCode::InvalidModel, "does not fit its shape"),
        ("NO_DATA", ErrorCode::InvalidModel, "elements of a constant"),
        ("TYPE", ErrorCode::InvalidModel, "99"),
        ("TEXT", ErrorCode::InvalidModel, "UTF-8"),
        ("KIND", ErrorCode::InvalidModel, "of no kind"),
        ("AGAIN", ErrorCode::InvalidModel, "`axis` stands twice"),
        ("MANY", ErrorCode::Limit, "nodes"),
        ("SILENT", ErrorCode::State, "status 77"),
        ("LYING", ErrorCode::InvalidModel, "does not fit its shape"),
        ("NO_KEY", ErrorCode::InvalidValue, "has no key"),
        (
            "NO_TEXTS",
            ErrorCode::InvalidModel,
            "entries of the metadata",
        ),
        ("NO_METADATA", ErrorCode::InvalidModel, "metadata is NULL"),
        ("BODY_DANGLING", ErrorCode::InvalidGraph, "the value `a`"),
        ("BODY_TWICE", ErrorCode::InvalidModel, "are called `a`"),
        (
            "BODY_AGAIN",
            ErrorCode::InvalidModel,
            "`then_branch` stands twice",
        ),
        ("BODY_ENDLESS", ErrorCode::Limit, "graphs in each other"),
        ("BODY_WITHOUT_END", ErrorCode::InvalidModel, "has no end"),
        (
            "BODY_WITHOUT_NODE",
            ErrorCode::InvalidModel,
            "`then_branch` has no node",
        ),
        (
            "BODY_WITHOUT_BEGINNING",
            ErrorCode::InvalidModel,
            "has not begun",
        ),
        ("BODY_WITHOUT_NAME", ErrorCode::InvalidModel, "has no name"),
        (
            "BODY_OF_NO_BODY",
            ErrorCode::Unsupported,
            "the attribute `body`",
        ),
        ("UNTYPED", ErrorCode::InvalidModel, "no element type"),
    ];
    for (name, code, part) in cases {
        let mut options = options(&["cpu"], &case(name));
        options.limits.nodes = 100;
        let error = failed(load(b"mine", options));
        assert_eq!(error.code(), code, "{name}: {error}");
        assert!(error.message().contains(part), "{name}: {error}");
        let limit = ["MANY", "BODY_ENDLESS"].contains(&name);
        assert!(
            limit || error.message().contains("the importer `mine`"),
            "{name}: {error}"
        );
    }
    // Nothing is a model, too.
    assert!(opened(&case("NOTHING")).is_ok_and(|session| session.inputs().is_empty()));
    assert!(opened(&case("NEWER")).is_ok());
}

#[test]
fn libraries_that_are_no_importers_are_refused() {
    let wrong = [
        ("version", &["VERSION=7"][..], "another version"),
        ("size", &["SIZE=16"], "too small"),
        ("load", &["WITHOUT_LOAD"], "without `load`"),
        ("refuse", &["REFUSE"], "does not work with this Kilim"),
    ];
    for (name, defines, part) in wrong {
        let error = failed(opened(&importing(name, defines)));
        assert_eq!(error.code(), ErrorCode::InvalidValue, "{name}: {error}");
        assert!(error.message().contains(part), "{name}: {error}");
    }
    // The table of a later version is longer.
    let longer = importing("longer", &["SIZE=sizeof(KilimImporter)+64", "CASE=NEWER"]);
    assert!(opened(&longer).is_ok());

    let folder = folder("importing-backend");
    let library = folder.join(importer_file_name("mine"));
    compile_to("examples/plugin-c/scale.c", &library, &[]);
    let error = failed(opened(&folder));
    assert_eq!(error.code(), ErrorCode::InvalidValue);
    assert!(
        error.message().contains("not the library of an importer"),
        "{error}"
    );
    std::fs::write(&library, "no library").unwrap();
    assert_eq!(failed(opened(&folder)).code(), ErrorCode::InvalidValue);
}

#[cfg(target_os = "linux")]
#[test]
fn a_library_that_crashes_takes_nothing_along() {
    let error = failed(opened(&importing("crash", &["CRASH"])));
    assert_eq!(error.code(), ErrorCode::Device, "{error}");
    assert!(
        error.got().is_some_and(|got| got.contains("signal")),
        "{error}"
    );
}

#[test]
fn the_walk_through_shows_the_sample_importer() {
    let path = Path::new("examples/importer-rust/src/lib.rs");
    let shown = blocks().into_iter();
    let shown = shown.filter(|b| b.source.as_deref() == Some(path));
    let shown: usize = shown.map(|block| block.code.lines().count()).sum();
    let sample = std::fs::read_to_string(root().join(path)).unwrap();
    let code = sample.split_once("struct Chain;").unwrap().1;
    let lines = code.lines().filter(|l| !l.is_empty()).count();
    assert!(shown >= lines, "{shown} lines of {lines}");
}
