//! Imports the ONNX conformance suite (see `tools/conformance`) and the collected models, where they are there.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kilim_core::error::{Error, ErrorCode, Result};
use kilim_core::graph::Graph;
use kilim_core::tensor::AlignedBytes;
use kilim_core::{DType, Limits, Tensor};
use kilim_formats::{ExternalFiles, ModelFile, load_model};
use kilim_test_support::material;

fn models(folder: &Path, found: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        let path = entry.path();
        if path.is_dir() {
            models(&path, found);
        } else if path.extension().is_some_and(|e| e == "onnx") {
            found.push(path);
        }
    }
    found.sort();
}

fn read(path: &Path) -> Result<Arc<AlignedBytes>> {
    let bytes = std::fs::read(path).map_err(|e| Error::new(ErrorCode::Io, e.to_string()))?;
    AlignedBytes::copy_of(&bytes).map(Arc::new)
}

/// The files of a folder.
struct Beside<'a>(&'a Path);

impl ExternalFiles for Beside<'_> {
    fn size(&self, path: &str) -> Result<u64> {
        Ok(read(&self.0.join(path))?.len() as u64)
    }

    fn part(&self, path: &str, offset: u64, len: usize) -> Result<Tensor> {
        let bytes = read(&self.0.join(path))?;
        Tensor::view(DType::U8, &[len], bytes, offset as usize, len)
    }
}

fn import(path: &Path) -> Result<Graph> {
    let folder = path.parent().unwrap_or(path);
    let external = Beside(folder);
    let name = path.to_string_lossy();
    let source = ModelFile::new(read(path)?, &name).with_external(&external);
    load_model(&source, &Limits::default())
}

#[test]
fn collected_models_import() {
    let mut found = Vec::new();
    let Some(folder) = material::models() else {
        return;
    };
    models(&folder, &mut found);
    let mut failed = Vec::new();
    for path in &found {
        match import(path) {
            Ok(graph) => println!("{}: {} nodes", path.display(), graph.nodes.len()),
            Err(e) => failed.push(format!("{}: {e}", path.display())),
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// Every case of the suite is imported or refused with `Unsupported`.
#[test]
fn conformance_suite_imports_or_is_refused() {
    let mut found = Vec::new();
    let Some(suite) = material::suite() else {
        return;
    };
    models(&suite, &mut found);
    let mut counts: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    let mut refused: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut failed = Vec::new();
    for path in &found {
        let mut parts = path.components().rev().skip(1);
        let case = parts
            .next()
            .map(|c| c.as_os_str().to_string_lossy().into_owned());
        let kind = parts
            .next()
            .map(|c| c.as_os_str().to_string_lossy().into_owned());
        let (case, kind) = (case.unwrap_or_default(), kind.unwrap_or_default());
        let count = counts.entry(kind).or_default();
        count.1 += 1;
        match import(path) {
            Ok(_) => count.0 += 1,
            Err(e) if e.code() == ErrorCode::Unsupported => {
                let reason = e.message().split(" at `").next().unwrap_or_default();
                let reason = reason.rsplit_once("have: ").map_or(reason, |r| r.1);
                refused.entry(reason.to_string()).or_default().push(case);
            }
            Err(e) => failed.push(format!("{case}: {e}")),
        }
    }
    for (reason, cases) in &refused {
        println!("{:4} {reason} ({})", cases.len(), cases[0]);
    }
    for (kind, (imported, all)) in &counts {
        println!("{kind}: {imported} of {all}");
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// Bytes of the suite's models replaced at random: whatever comes of it, no panic.
#[test]
fn garbled_models_never_panic() {
    let mut found = Vec::new();
    let Some(suite) = material::suite() else {
        return;
    };
    models(&suite.join("node"), &mut found);
    let mut seed = 1u64;
    let mut next = |n: usize| {
        seed = seed
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (seed >> 33) as usize % n.max(1)
    };
    for path in &found {
        let whole = std::fs::read(path).unwrap_or_default();
        for _ in 0..8 {
            let mut bytes = whole.clone();
            for _ in 0..1 + next(3) {
                let at = next(bytes.len());
                bytes[at] = [0, 1, 0x7f, 0x80, 0xff, next(256) as u8][next(6)];
            }
            let file = AlignedBytes::copy_of(&bytes).map(Arc::new);
            let file = file.expect("there is memory for a small model");
            let source = ModelFile::new(file, "garbled");
            let load = || load_model(&source, &Limits::default()).is_ok();
            let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(load));
            assert!(result.is_ok(), "{} panics", path.display());
        }
    }
}
