//! Which parts pages with models of each kind need, so that they are fetched before the core calls for them.

use super::owners::PARTS;
use super::profile::Profile;
use std::collections::BTreeSet;
use std::fmt::Write;

/// Kinds of runs that `www/package/src/parts.ts` asks for.
pub const KINDS: &[&str] = &[
    "brought",
    "ggml",
    "gguf",
    "gpu",
    "gpu_language",
    "gpu_quantized",
    "gpu_tflite",
    "language",
    "mnn",
    "ncnn",
    "nnpackage",
    "pnnx",
    "quantized",
    "safetensors",
    "speech",
    "tengine",
    "text",
    "tflite",
    "tflite_quantized",
    "tnn",
];

/// A module of JavaScript that gives the parts of each kind: those of functions that at least half of its runs enter.
pub fn needs(profile: &Profile, owners: &[Option<usize>]) -> String {
    let mut entered: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); profile.kinds().len()];
    for (owner, f) in owners.iter().zip(0..) {
        if let Some(part) = owner {
            for run in profile.runs(f) {
                entered[usize::from(*run)].insert(*part);
            }
        }
    }
    let mut text = String::from("export const needs = {\n");
    for kind in KINDS {
        let own = profile.kinds().iter().zip(&entered);
        let runs: Vec<_> = own
            .filter(|(of, _)| of == kind)
            .map(|(_, parts)| parts)
            .collect();
        let usual =
            |part: &usize| 2 * runs.iter().filter(|run| run.contains(part)).count() >= runs.len();
        let parts = (0..PARTS.len()).filter(|part| !runs.is_empty() && usual(part));
        let parts: Vec<String> = parts.map(|part| format!("'{}'", PARTS[part])).collect();
        writeln!(text, "  {kind}: [{}],", parts.join(", ")).expect("text takes all");
    }
    text + "};\n"
}
