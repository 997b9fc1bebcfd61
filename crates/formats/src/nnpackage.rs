//! Packages of onert: a folder with a model, and what `metadata/MANIFEST` in it says (`docs/nnpackage` of ONE).

use kilim_core::error::{Error, ErrorCode, Result, unsupported};
use serde_json::Value;

use crate::external::check_path;

/// Where the manifest lies in a package.
pub const MANIFEST: &str = "metadata/MANIFEST";

/// The types of models that onert takes from a package and Kilim reads.
const TYPES: [&str; 2] = ["circle", "tflite"];

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
    use super::*;

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
}
