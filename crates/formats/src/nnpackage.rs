//! Packages of onert: a folder with a model, and what `metadata/MANIFEST` in it says (`docs/nnpackage` of ONE). The importer reads such a folder
//! in a zip archive.

use std::sync::Arc;

use kilim_core::Limits;
use kilim_core::error::{Error, ErrorCode, Result, unsupported};
use kilim_core::graph::Graph;
use serde_json::Value;

use crate::external::check_path;
use crate::tflite::{Circle, TfLite};
use crate::zip::Archive;
use crate::{Importer, ModelFile};

/// Where the manifest lies in a package.
pub const MANIFEST: &str = "metadata/MANIFEST";

/// The types of models that onert takes from a package and Kilim reads.
const TYPES: [&str; 2] = ["circle", "tflite"];

/// The importer of packages that are one file.
pub struct NnPackage;

impl Importer for NnPackage {
    fn format(&self) -> &'static str {
        "nnpackage"
    }

    fn probe(&self, bytes: &[u8], _: &str) -> bool {
        Archive::read(bytes).is_some_and(|archive| folder_in(&archive).is_some())
    }

    fn load(&self, source: &ModelFile, limits: &Limits) -> Result<Graph> {
        let archive = Archive::read(source.bytes.as_slice());
        let archive = archive.ok_or_else(|| invalid("the archive is cut off or garbled"))?;
        let folder = folder_in(&archive).ok_or_else(|| invalid("the archive has no manifest"))?;
        let manifest = archive.file(&format!("{folder}{MANIFEST}"), limits)?;
        let path = format!("{folder}{}", model_of(manifest.as_slice())?);
        source.interrupt.check()?;
        let bytes = Arc::new(archive.file(&path, limits)?);
        let model = ModelFile::new(bytes, &path)
            .with_operators(&source.operators)
            .with_pictures(source.pictures)
            .with_interrupt(&source.interrupt)
            .with_structure_only(source.structure);
        let importers: [&dyn Importer; 2] = [&Circle, &TfLite];
        let mut fitting = importers.into_iter();
        let fitting = fitting.find(|of| of.probe(model.bytes.as_slice(), &path));
        let fitting = fitting.ok_or_else(|| {
            let e = invalid("the model of a package is of another type than its manifest says");
            e.with_input(&path).with_expected(TYPES.join(", "))
        })?;
        fitting.load(&model, limits)
    }
}

/// Where the package lies in an archive: there itself, or in a folder that has all of it.
fn folder_in<'a>(archive: &'a Archive) -> Option<&'a str> {
    let mut folders: Vec<_> = archive
        .names()
        .filter_map(|name| name.strip_suffix(MANIFEST))
        .filter(|folder| folder.is_empty() || folder.find('/') == Some(folder.len() - 1))
        .collect();
    folders.sort_unstable();
    folders.first().copied()
}

fn invalid(message: &str) -> Error {
    Error::new(ErrorCode::InvalidModel, message)
}

/// The path of a package's model, from the package's folder on, by the bytes of its manifest.
///
/// # Errors
/// `InvalidModel` where the manifest is garbled or the path leads out of the folder, `Unsupported` for several models in one
/// package and for a model of another type.
pub fn model_of(manifest: &[u8]) -> Result<String> {
    let invalid =
        |what: String| Error::new(ErrorCode::InvalidModel, format!("`{MANIFEST}`: {what}"));
    let manifest: Value = serde_json::from_slice(manifest).map_err(|e| invalid(e.to_string()))?;
    let texts = |key: &str| {
        let list = manifest.get(key).and_then(Value::as_array);
        let texts = list.and_then(|list| list.iter().map(Value::as_str).collect());
        texts.ok_or_else(|| invalid(format!("`{key}` is no list of texts")))
    };
    let (models, types): (Vec<&str>, Vec<&str>) = (texts("models")?, texts("model-types")?);
    let ([model], [of]) = (&models[..], &types[..]) else {
        if models.len() < 2 {
            return Err(invalid("a model and its type are needed".to_string()));
        }
        return Err(unsupported("a package of several models")
            .with_got(models.join(", "))
            .with_hint("open one of its models"));
    };
    if !TYPES.contains(of) {
        let e = unsupported(format!("a package with a model of the type `{of}`"));
        return Err(e.with_expected(TYPES.join(", ")));
    }
    check_path(model)?;
    Ok(model.to_string())
}

#[cfg(test)]
mod tests {
    use kilim_core::tensor::AlignedBytes;
    use kilim_test_support::archive::Cases;

    use super::*;
    use crate::garbage::damaged;
    use crate::{ImporterRegistry, load_model};

    fn code(manifest: &str) -> Option<ErrorCode> {
        model_of(manifest.as_bytes()).err().map(|e| e.code())
    }

    #[test]
    fn a_manifest_names_its_model() {
        let manifest = r#"{"major-version": "1", "minor-version": "2", "patch-version": "0", "configs": ["m.cfg"],
            "models": ["add.circle"], "model-types": ["circle"]}"#;
        assert_eq!(
            model_of(manifest.as_bytes()).ok().as_deref(),
            Some("add.circle")
        );
        let of = |models: &str, types: &str| {
            code(&format!(
                r#"{{"models": {models}, "model-types": {types}}}"#
            ))
        };
        assert_eq!(
            of(r#"["a.tvn"]"#, r#"["tvn"]"#),
            Some(ErrorCode::Unsupported)
        );
        let two = of(r#"["a.circle", "b.circle"]"#, r#"["circle", "circle"]"#);
        assert_eq!(two, Some(ErrorCode::Unsupported));
        for wrong in [
            of("[]", "[]"),
            of("[1]", r#"["circle"]"#),
            of(r#"["../a.circle"]"#, r#"["circle"]"#),
            of(r#"["a.circle"]"#, "[]"),
            code("{"),
        ] {
            assert_eq!(wrong, Some(ErrorCode::InvalidModel));
        }
    }

    const SAYS: &[u8] = br#"{"models": ["add.circle"], "model-types": ["circle"]}"#;

    /// A model of `tests/references/circle.zip`.
    fn circle() -> Vec<u8> {
        let cases = Cases::of("circle");
        let mut paths = cases.archive.entries().map(|(path, _)| path);
        let path = paths.find(|path| path.ends_with("model.circle"));
        cases.file(path.expect("a model")).to_vec()
    }

    /// An archive of these files, each as it is, or deflated.
    fn zip(files: &[(&str, &[u8])], deflated: bool) -> Vec<u8> {
        let (mut out, mut directory) = (Vec::new(), Vec::new());
        for (name, bytes) in files {
            let packed = match deflated {
                true => miniz_oxide::deflate::compress_to_vec(bytes, 6),
                false => bytes.to_vec(),
            };
            let mut said = vec![20u8, 0, 0, 0, if deflated { 8 } else { 0 }, 0, 0, 0, 0, 0];
            for number in [
                crate::zip::crc32(bytes),
                packed.len() as u32,
                bytes.len() as u32,
            ] {
                said.extend(number.to_le_bytes());
            }
            said.extend([name.len() as u8, 0, 0, 0]);
            directory.extend([b"PK\x01\x02\x14\0".as_slice(), &said, &[0; 10]].concat());
            directory.extend((out.len() as u32).to_le_bytes());
            directory.extend(name.as_bytes());
            out.extend([b"PK\x03\x04".as_slice(), &said, name.as_bytes(), &packed].concat());
        }
        let count = [files.len() as u8, 0];
        let place = [directory.len() as u32, out.len() as u32].map(u32::to_le_bytes);
        out.extend(&directory);
        out.extend(
            [
                b"PK\x05\x06\0\0\0\0".as_slice(),
                &count,
                &count,
                &place.concat(),
                &[0; 2],
            ]
            .concat(),
        );
        out
    }

    fn import(bytes: &[u8]) -> Result<Graph> {
        let bytes = Arc::new(AlignedBytes::copy_of(bytes)?);
        load_model(&ModelFile::new(bytes, "add.zip"), &Limits::default())
    }

    #[test]
    fn a_package_in_an_archive_is_its_model() {
        let model = circle();
        let alone = import(&model).expect("a graph");
        for folder in ["", "add/"] {
            let [manifest, path] = [MANIFEST, "add.circle"].map(|name| format!("{folder}{name}"));
            for deflated in [false, true] {
                let bytes = zip(&[(&path, &model), (&manifest, SAYS)], deflated);
                let known = ImporterRegistry::default();
                let format = known.probe(&bytes, "m").map(Importer::format);
                assert_eq!(format, Some("nnpackage"));
                let graph = import(&bytes).expect("a graph");
                assert_eq!(graph.nodes.len(), alone.nodes.len());
                assert_eq!(crate::shown::ports(&graph), crate::shown::ports(&alone));
            }
        }
    }

    #[test]
    fn archives_that_do_not_fit_are_errors() {
        let model = circle();
        let code = |bytes: &[u8]| import(bytes).expect_err("an error").code();
        let whole = zip(&[("add.circle", &model), (MANIFEST, SAYS)], true);
        assert_eq!(code(&whole[..whole.len() - 1]), ErrorCode::UnknownFormat);
        let deep = zip(
            &[("a/b/add.circle", &model), ("a/b/metadata/MANIFEST", SAYS)],
            false,
        );
        assert_eq!(code(&deep), ErrorCode::UnknownFormat);
        assert_eq!(
            code(&zip(&[(MANIFEST, SAYS)], false)),
            ErrorCode::InvalidModel
        );
        let other = zip(&[("add.circle", b"none"), (MANIFEST, SAYS)], false);
        assert_eq!(code(&other), ErrorCode::InvalidModel);
        // A byte of the model that the sum of the archive does not know.
        let mut garbled = zip(&[("add.circle", &model), (MANIFEST, SAYS)], false);
        garbled[BEFORE_MODEL + model.len() / 2] ^= 1;
        assert_eq!(code(&garbled), ErrorCode::InvalidModel);
        let mut encrypted = whole.clone();
        let listed = encrypted.windows(4).position(|part| part == b"PK\x01\x02");
        encrypted[listed.expect("a directory") + 8] |= 1;
        assert_eq!(code(&encrypted), ErrorCode::Unsupported);
        let mut packed = whole.clone();
        packed[listed.expect("a directory") + 10] = 14;
        assert_eq!(code(&packed), ErrorCode::Unsupported);
    }

    /// Where the bytes of the first file begin: behind what is said of it, and its name.
    const BEFORE_MODEL: usize = 30 + "add.circle".len();

    #[test]
    fn damaged_archives_never_panic() {
        let bytes = zip(&[("add.circle", &circle()), (MANIFEST, SAYS)], true);
        damaged(&bytes, 20, |bytes| drop(import(bytes)));
    }
}
