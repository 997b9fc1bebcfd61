//! Which part each function belongs to.

use super::binary::Binary;
use super::clusters::{Entered, Kinds, clusters};
use super::cold::{LENGTHS, is_piece};
use super::moves::Kind;
use super::needs::KINDS;
use super::profile::Profile;
use std::collections::BTreeSet;

/// The parts beside the core, in the order of their numbers. `www/package/src/parts.ts` has the same names.
pub const PARTS: &[&str] = &[
    "gpu", "shaders", "gpu_rare", "tflite", "ncnn", "mnn", "tengine", "tnn", "pnnx", "gguf",
    "text", "speech", "brought", "common1", "common2", "common3", "common4", "common5", "common6",
    "common7", "common8", "common9", "common10", "common11", "common12", "common13", "common14",
    "common15", "common16", "common17", "common18", "common19", "common20", "common21", "common22",
    "common23", "common24", "common25", "common26", "common27", "common28", "common29", "common30",
    "common31", "common32", "rare1", "rare2", "rare3", "rare4", "rare5", "rare6", "rare7", "rare8",
    "rare9", "rare10", "rare11", "rare12", "rare13", "rare14", "rare15", "rare16",
];
const GPU: usize = 0;
/// What runs on WebGPU enter beside those of networks for pictures.
const SHADERS: usize = 1;
/// What no run entered of WebGPU's backend.
const GPU_RARE: usize = 2;
const TFLITE: usize = 3;
const NCNN: usize = 4;
const MNN: usize = 5;
const TENGINE: usize = 6;
const TNN: usize = 7;
const PNNX: usize = 8;
const GGUF: usize = 9;
/// What makes the words of decoders.
const TEXT: usize = 10;
/// What hears and writes.
const SPEECH: usize = 11;
/// What stands between Kilim and backends of the page.
const BROUGHT: usize = 12;
/// The first of the parts with what runs of several families enter.
const COMMON: usize = 13;
/// The first of the parts with what no run entered.
const RARE: usize = 45;

/// How much the runs of a kind count together: once, unless it is here. The cases of an operator's or a format's tests are many, and pages have few of
/// each; those of ONNX stand for networks of all kinds.
const WEIGHTS: &[(&str, f64)] = &[
    ("brought", 0.3),
    ("circle", 0.3),
    ("decoders", 0.5),
    ("experts", 0.1),
    ("frameworks", 0.5),
    ("ggml", 0.3),
    ("gpu", 4.0),
    ("language", 3.0),
    ("tflite_quantized", 2.0),
    ("gpu_language", 0.5),
    ("gpu_quantized", 0.5),
    ("gpu_tflite", 0.5),
    ("microsoft", 2.0),
    ("nnpackage", 0.1),
    ("opsets", 4.0),
    ("ort", 0.3),
    ("rules", 0.3),
    ("speech", 2.5),
    ("text", 4.0),
    ("tflite_cases", 0.3),
];

/// How much more runs of a kind count that pages tell beforehand: they fetch what half of the runs enter.
const BEFOREHAND: f64 = 2.0;

/// Bytes up to which a function costs about as much as what would stand in for it, which is a body, a type, a place in the table and
/// an element there.
const SMALL: usize = 60;
/// Bytes up to which a function is the core's that runs of at least half of all kinds enter: a page may enter it by chance, and would fetch a
/// whole part for it.
const SHARED: usize = 128;
/// What the names of functions that sort hold.
const SORTS: &str = "core::slice::sort";

/// Kinds of runs on WebGPU of models that have kinds of runs on the CPU, too.
const ON_GPU: &[&str] = &["gpu_language", "gpu_quantized", "gpu_tflite"];

/// The part of what runs of a kind alone enter, if it has one.
fn family(kind: &str) -> Option<usize> {
    Some(match kind {
        "gpu" => GPU,
        "tflite" | "tflite_cases" | "tflite_quantized" | "circle" => TFLITE,
        "ncnn" => NCNN,
        "mnn" => MNN,
        "tengine" => TENGINE,
        "tnn" => TNN,
        "pnnx" => PNNX,
        "gguf" | "safetensors" => GGUF,
        "text" => TEXT,
        "speech" => SPEECH,
        "brought" => BROUGHT,
        _ => return None,
    })
}

/// The part of every function; none for the core's.
pub fn owners(binary: &Binary, profile: &Profile) -> Vec<Option<usize>> {
    let mut owners = vec![None; binary.types.len()];
    let (mut several, mut never) = (Vec::new(), Vec::new());
    let kinds = profile.kinds().iter().collect::<BTreeSet<_>>().len();
    for f in binary.functions() {
        let own = f as usize;
        if f < binary.imported || binary.rooted[own] || profile.is_core(f) || stays(binary, f) {
            continue;
        }
        let of = profile.runs(f).iter().map(|run| profile.kind(*run));
        if binary.sizes[own] <= SHARED && 2 * of.collect::<BTreeSet<_>>().len() >= kinds {
            continue;
        }
        match (profile.runs(f), of_family(profile, f)) {
            ([], _) if is_of_gpu(&binary.names[own]) => {
                // Devices differ, so that any page may enter what is no kernel.
                let any = !is_piece(&binary.names[own]) && !is_kernel(&binary.names[own]);
                owners[own] = Some(if any { GPU } else { GPU_RARE });
            }
            ([], _) => never.push(f),
            (_, Some(part)) => owners[own] = Some(part),
            (runs, None) => several.push(Entered {
                function: f,
                bytes: binary.sizes[own],
                runs,
            }),
        }
    }
    let common = clusters(&several, &kinds_of(profile), RARE - COMMON);
    for (functions, part) in common.iter().zip(COMMON..) {
        for f in functions {
            owners[*f as usize] = Some(part);
        }
    }
    for (functions, part) in slices(binary, never).iter().zip(RARE..) {
        for f in functions {
            owners[*f as usize] = Some(part);
        }
    }
    owners
}

/// Whether a function that models of other kinds enter, or none, is the core's all the same.
fn stays(binary: &Binary, f: u32) -> bool {
    let name = &binary.names[f as usize];
    if is_piece(name) {
        // What sorts a longer list is a piece of what sorts a short one.
        let sorts = |called: &u32| binary.names[*called as usize].contains(SORTS);
        return binary.calls[f as usize].iter().any(sorts);
    }
    binary.sizes[f as usize] <= SMALL || LENGTHS.iter().any(|of| name.contains(of))
}

/// Whether a function is of what kernels of WebGPU are made of, by its name.
fn is_kernel(name: &str) -> bool {
    ["kilim_wgpu::kernels::", "kilim_wgpu::shaders::"]
        .iter()
        .any(|of| name.contains(of))
}

fn is_of_gpu(name: &str) -> bool {
    ["wgpu", "naga"].iter().any(|krate| name.contains(krate))
}

/// The part of a function that runs of one family alone enter, on the CPU or on WebGPU.
fn of_family(profile: &Profile, f: u32) -> Option<usize> {
    let kinds = profile.runs(f).iter().map(|run| profile.kind(*run));
    let kinds: BTreeSet<&str> = kinds.collect();
    let on_cpu = kinds.iter().filter(|kind| !ON_GPU.contains(kind));
    let families: BTreeSet<Option<usize>> = on_cpu.map(|kind| family(kind)).collect();
    match (families.len(), families.first()) {
        (0, _) if !kinds.is_empty() => Some(SHADERS),
        // What quantised networks and rare operators alone enter those of plain numbers need not fetch.
        (1, Some(Some(TFLITE))) if !kinds.contains("tflite") => None,
        (1, Some(Some(BROUGHT))) if kinds.len() > 1 => None,
        (1, Some(only)) => *only,
        _ => None,
    }
}

/// The runs and their kinds.
fn kinds_of(profile: &Profile) -> Kinds {
    let mut names: Vec<&str> = Vec::new();
    let mut kinds: Vec<Kind> = Vec::new();
    let mut of = Vec::new();
    for name in profile.kinds() {
        let known = names.iter().position(|other| other == name);
        let kind = known.unwrap_or_else(|| {
            let weight = WEIGHTS.iter().find(|(of, _)| of == name);
            let weight = weight.map_or(1.0, |(_, weight)| *weight);
            let beforehand = KINDS.contains(&name.as_str());
            names.push(name);
            kinds.push(Kind {
                runs: 0,
                weight: weight * if beforehand { BEFOREHAND } else { 1.0 },
                beforehand,
            });
            names.len() - 1
        });
        kinds[kind].runs += 1;
        of.push(kind);
    }
    Kinds { of, kinds }
}

/// Cuts functions into as many parts of about the same size as there are for what no run entered. Those of a module are beside each other: a model
/// that does enter one may enter its neighbours.
fn slices(binary: &Binary, mut functions: Vec<u32>) -> Vec<Vec<u32>> {
    let module = |f: &u32| {
        let name = &binary.names[*f as usize];
        &name[name.find("kilim_").unwrap_or(0)..]
    };
    functions.sort_by_key(|f| (module(f), *f));
    let bytes = |f: &u32| binary.sizes[*f as usize];
    let all: usize = functions.iter().map(bytes).sum();
    let count = PARTS.len() - RARE;
    let mut slices = vec![Vec::new(); count];
    let mut before = 0;
    for f in functions {
        slices[before * count / all.max(1)].push(f);
        before += bytes(&f);
    }
    slices
}
