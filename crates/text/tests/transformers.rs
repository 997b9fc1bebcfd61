//! Folders of transformers (`tests/references/safetensors.zip`): settings and weights, which are read from disk when they are needed.

use std::fs;
use std::path::{Path, PathBuf};

use kilim::{BackendId, ErrorCode, LoadOptions, RunOptions};
use kilim_core::Result;
use kilim_test_support::archive::Cases;
use kilim_text::{Decoder, Folder, Sampler, Sampling};

/// A case's model in a folder of the test's own.
fn folder(test: &str, case: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{test}-{case}"));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("a folder");
    let cases = Cases::of("safetensors");
    for (path, _) in cases.archive.entries() {
        let name = path
            .strip_prefix(case)
            .and_then(|rest| rest.strip_prefix('/'));
        if let Some(name) = name.filter(|name| !name.contains('/')) {
            fs::write(folder.join(name), cases.file(path)).expect("a file");
        }
    }
    folder
}

/// The words that follow three others, as far as `count`.
fn spoken(model: &Path, folder: &Folder, count: usize) -> Result<Vec<u32>> {
    let options = LoadOptions {
        backends: vec![BackendId::from("cpu")],
        ..LoadOptions::default()
    };
    let mut session = pollster::block_on(kilim::load(model, options))?;
    let mut decoder = Decoder::new(&session, &folder.settings)?;
    let mut sampler = Sampler::new(Sampling::default())?;
    let (mut words, mut new) = (Vec::new(), vec![3, 14, 9]);
    while words.len() < count {
        let options = RunOptions::default();
        let mut scores = pollster::block_on(decoder.step(&mut session, &new, &options))?;
        let word = sampler.pick(&mut scores)?;
        words.push(word);
        new = vec![word];
    }
    Ok(words)
}

#[test]
fn weights_in_parts_are_those_of_one_file() {
    let whole = folder("speaks", "llama-bf16");
    let parts = folder("speaks", "llama-bf16-in-parts");
    let open = |path: &Path| Folder::open(path, None).expect("a folder");
    let (opened, in_parts) = (open(&whole), open(&parts));
    assert_eq!(opened.model, whole.join("config.json"));
    assert_eq!(opened.settings.context, Some(64));
    let words = spoken(&opened.model, &opened, 8).expect("words");
    assert_eq!(words.len(), 8);
    for (model, of) in [
        (parts.join("config.json"), &in_parts),
        (whole.join("model.safetensors"), &opened),
    ] {
        assert_eq!(
            spoken(&model, of, 8).expect("words"),
            words,
            "{}",
            model.display()
        );
    }
    fs::remove_file(whole.join("model.safetensors")).expect("the weights");
    let missing = Folder::open(&whole, None).err().map(|e| e.code());
    assert_eq!(missing, Some(ErrorCode::Io));
    for folder in [whole, parts] {
        fs::remove_dir_all(folder).expect("the folder");
    }
}

/// The settings name 64 words; the factors of the angles are for 32.
#[test]
fn a_text_is_as_long_as_its_angles() {
    let path = folder("angles", "phi3-bf16");
    for file in [None, Some(Path::new("model.safetensors"))] {
        let opened = Folder::open(&path, file).expect("a folder");
        assert_eq!(opened.settings.context, Some(32));
    }
    fs::remove_dir_all(path).expect("the folder");
}
