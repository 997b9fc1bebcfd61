//! Which part each function belongs to.

use super::binary::Binary;
use super::cold::{LENGTHS, is_piece};
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// The parts beside the core, in the order of their numbers. `www/package/src/parts.ts` has the same names.
pub const PARTS: &[&str] = &[
    "gpu",
    "shaders",
    "tflite",
    "ncnn",
    "mnn",
    "tengine",
    "tnn",
    "pnnx",
    "gguf",
    "language",
    "text",
    "speech",
    "quantized",
    "more",
    "rest",
    "seldom",
    "several",
];
const GPU: usize = 0;
/// Kernels of WebGPU that networks for pictures do not run, with their shaders.
const SHADERS: usize = 1;
const TFLITE: usize = 2;
const NCNN: usize = 3;
const MNN: usize = 4;
const TENGINE: usize = 5;
const TNN: usize = 6;
const PNNX: usize = 7;
const GGUF: usize = 8;
const LANGUAGE: usize = 9;
/// The words of decoders.
const TEXT: usize = 10;
/// What hears and writes.
const SPEECH: usize = 11;
const QUANTIZED: usize = 12;
/// What any model may need, but most do not: what lengths, forms and mistakes decide, not operators.
const MORE: usize = 13;
const REST: usize = 14;
/// What few pages ask for by a call or a file of its own, and nothing else does.
const SELDOM: usize = 15;
/// What runs with other backends than the CPU's enter, such as what cuts a graph among backends, and is not named after one.
const SEVERAL: usize = 16;

/// What the names of functions hold that read one format, with the part that they are.
const FORMATS: &[(&str, usize)] = &[
    ("kilim_formats::flatbuffer", TFLITE),
    ("kilim_formats::mnn", MNN),
    ("kilim_formats::ncnn", NCNN),
    ("kilim_formats::ort", TFLITE),
    ("kilim_formats::pnnx", PNNX),
    ("kilim_formats::tengine", TENGINE),
    ("kilim_formats::tnn", TNN),
    ("tflite", TFLITE),
];

/// The functions that runs entered, by the kind of the run.
pub type Profile = BTreeMap<String, HashSet<u32>>;

/// Reads what `www/scripts/profile/run.mjs` writes: a line for each kind of run, its name and its functions. None where it is something
/// else.
pub fn read_profile(text: &str) -> Option<Profile> {
    let line = |line: &str| {
        let mut words = line.split(' ');
        let kind = words.next()?.to_owned();
        let functions: Result<_, _> = words.map(str::parse).collect();
        Some((kind, functions.ok()?))
    };
    text.lines().map(line).collect()
}

/// Bytes up to which a function costs about as much as what would stand in for it, which is a body, a type, a place in the table and
/// an element there.
const SMALL: usize = 60;
/// What the names of functions that sort hold.
const SORTS: &str = "core::slice::sort";
/// Bytes up to which a function of `COMMON` belongs to `MORE`.
const LIBRARY: usize = 512;
/// How the names of functions begin, or what they hold, where lengths and forms decide whether a run enters them, not operators: Rust's
/// own libraries, what reads any ONNX file, what rewrites any graph, copies and the pieces of loops.
const COMMON: &[&str] = &[
    "core::",
    "alloc::",
    "<core::",
    "<alloc::",
    "compiler_builtins",
    "kilim_core::passes::",
    "kilim_core::reflect::",
    "kilim_core::interrupt::",
    "kilim_formats::beside::",
    "kilim_formats::build::",
    "kilim_formats::onnx::builder::",
    "kilim_formats::onnx::proto::",
];

/// What the names of functions hold that a kernel of WebGPU is made of; all else of that backend any page with it may need.
const KERNELS: &[&str] = &["kilim_wgpu::kernels::", "kilim_wgpu::shaders::"];

/// What the names of functions hold that stand between Kilim and backends and importers of the page, that read Whisper files of ggml,
/// zip archives, and numbers of GGUF files that lie on grids.
const OF_FEW: &[&str] = &[
    "adler2",
    "blocks::gridded",
    "kilim_formats::ggml",
    "kilim_formats::nnpackage",
    "kilim_formats::onnx::draft",
    "kilim_formats::zip",
    "kilim_speech::ggml",
    "kilim_web::backend",
    "kilim_web::draft",
    "miniz_oxide",
];

/// What the names of functions hold that read GGUF files, their tokenizers included, and models of transformers, whose networks are the same.
const OF_GGUF: &[&str] = &[
    "kilim_formats::gguf",
    "kilim_formats::language",
    "kilim_formats::safetensors",
    "kilim_text::gguf",
];

/// What the names of functions hold that make words: those of the crate, of its classes in JavaScript and of the call that opens them, and its
/// random numbers.
const WORDS: &[&str] = &[
    "kilim_text",
    "kilim_web::text",
    "wasmsession_openDecoder",
    "chacha20",
    "rand_chacha",
];

/// What the names of functions hold that hear and write: those of the crate and of its calls from JavaScript.
const SPOKEN: &[&str] = &[
    "kilim_speech",
    "kilim_web::speech",
    "wasmsession_openSpeech",
    "wasmsession_hearWindow",
];

/// The part of every function; none for the core's.
pub fn owners(binary: &Binary, profile: &Profile) -> Vec<Option<usize>> {
    let entered =
        |run: &str, function: u32| profile.get(run).is_some_and(|set| set.contains(&function));
    let mut owners: Vec<Option<usize>> = binary
        .functions()
        .map(|f| {
            let own = f as usize;
            if f < binary.imported || binary.rooted[own] || entered("core", f) {
                return None;
            }
            let name = &binary.names[own];
            let piece = is_piece(name);
            // The name of a piece may be that of another function with the same body.
            let of_gpu = ["wgpu", "naga"].iter().any(|krate| name.contains(krate));
            if of_gpu && (entered("gpu", f) || entered("gpu_tflite", f)) {
                return Some(GPU);
            }
            if KERNELS.iter().any(|of| name.contains(of)) {
                return Some(SHADERS);
            }
            if of_gpu && !piece {
                return Some(GPU);
            }
            let named = [
                (OF_FEW, SELDOM),
                (OF_GGUF, GGUF),
                (SPOKEN, SPEECH),
                (WORDS, TEXT),
            ];
            for (names, part) in named {
                let is_of = names.iter().any(|of| name.contains(of));
                if is_of && (piece || binary.sizes[own] > SMALL) {
                    return Some(part);
                }
            }
            let common = COMMON.iter().any(|of| match of.contains("kilim") {
                true => name.contains(of),
                false => name.starts_with(of),
            });
            let lengths = LENGTHS.iter().any(|of| name.contains(of));
            // What sorts a longer list is a piece of what sorts a short one.
            let sorts = |called: &u32| binary.names[*called as usize].contains(SORTS);
            if !piece && (binary.sizes[own] <= SMALL || lengths)
                || piece && binary.calls[own].iter().any(sorts)
            {
                return None;
            }
            // Whether a file is one of MNN every page asks of a file that no other format knows.
            let asks = name.contains("mnn::probe");
            if let Some((_, part)) = FORMATS.iter().find(|(of, _)| name.contains(of) && !asks) {
                return Some(*part);
            }
            if let Some(owner) = of_backends(f, &entered) {
                return owner;
            }
            let of_all = KINDS
                .iter()
                .all(|runs| runs.iter().any(|run| entered(run, f)));
            if of_all && binary.sizes[own] <= SHARED {
                return None;
            }
            if entered("tflite_pictures", f) {
                // What pictures' networks in TFLite and other models enter, any may.
                let others = [
                    "quantized_pictures",
                    "quantized",
                    "language",
                    "transformers",
                ]
                .iter()
                .any(|run| entered(run, f));
                return if others { None } else { Some(TFLITE) };
            }
            // Models of language fetch the part of quantised ones, too: what both enter stands in one of them.
            let quantized = ["quantized_pictures", "tflite_quantized"];
            if quantized.iter().any(|run| entered(run, f)) && entered("transformers", f) {
                return Some(QUANTIZED);
            }
            // The cases of this kind are of quantised models, but Rust's libraries are not.
            if entered("tflite", f) && common && !name.contains("kilim") {
                let others = entered("transformers", f) || entered("quantized_pictures", f);
                return if others { None } else { Some(TFLITE) };
            }
            let kinds = [
                ("transformers", LANGUAGE),
                ("quantized_pictures", QUANTIZED),
                ("tflite_quantized", QUANTIZED),
                ("quantized", QUANTIZED),
                ("tflite", QUANTIZED),
                ("language", LANGUAGE),
                ("text", TEXT),
                ("speech", SPEECH),
                ("gguf", GGUF),
            ];
            if let Some((_, part)) = kinds.iter().find(|(run, _)| entered(run, f)) {
                return Some(*part);
            }
            if name.contains("qlinear") {
                return Some(QUANTIZED);
            }
            let calls = name.starts_with("core::ops::function");
            match piece || calls || common && binary.sizes[own] <= LIBRARY {
                true => Some(MORE),
                false => Some(REST),
            }
        })
        .collect();
    follow(binary, &mut owners);
    owners
}

/// Kinds of models, by their runs. What runs of all of them enter, others may as well.
const KINDS: &[&[&str]] = &[
    &["tflite_pictures", "tflite"],
    &["quantized_pictures", "tflite_quantized", "quantized"],
    &["language", "transformers"],
];
/// Bytes up to which the core has what runs of all kinds enter: a page that lacks it fetches the part of another kind.
const SHARED: usize = 128;

/// Kinds of runs on the CPU alone.
const ON_CPU: &[&str] = &[
    "tflite_pictures",
    "tflite",
    "quantized_pictures",
    "tflite_quantized",
    "quantized",
    "language",
    "transformers",
    "text",
    "speech",
    "gguf",
];

/// Kinds of runs on WebGPU beside `gpu`, with those on the CPU of the same models, and the part of what they alone enter.
const ON_GPU: &[(&str, &[&str], usize)] = &[
    (
        "gpu_tflite",
        &["tflite_pictures", "tflite", "tflite_quantized"],
        SEVERAL,
    ),
    (
        "gpu_quantized",
        &[
            "quantized_pictures",
            "tflite_quantized",
            "quantized",
            "tflite",
        ],
        SHADERS,
    ),
    (
        "gpu_transformers",
        &[
            "transformers",
            "language",
            "quantized",
            "quantized_pictures",
        ],
        SHADERS,
    ),
];

/// The part of a function that runs with other backends than the CPU's entered, if it was one of them. Few functions are entered by runs of
/// other kinds as well: those are the core's, since one of them would have a page fetch the whole part of that kind.
fn of_backends(f: u32, entered: &impl Fn(&str, u32) -> bool) -> Option<Option<usize>> {
    let on_cpu = |runs: &[&str]| runs.iter().any(|run| entered(run, f));
    let gpu = entered("gpu", f);
    if gpu || entered("brought", f) {
        // What is not named after WebGPU any model may come to enter, which then fetches a small part.
        let part = if gpu { SEVERAL } else { SELDOM };
        return Some((!on_cpu(ON_CPU)).then_some(part));
    }
    ON_GPU.iter().find_map(|(run, own, part)| {
        let alone = entered(run, f) && !on_cpu(own);
        alone.then(|| (!on_cpu(ON_CPU)).then_some(*part))
    })
}

/// A function that only WebGPU's parts call, or only what few pages ask for, belongs to them.
fn follow(binary: &Binary, owners: &mut [Option<usize>]) {
    let callers = binary.callers();
    loop {
        let mut moved = false;
        for f in binary.functions() {
            if owners[f as usize] != Some(REST) || binary.slots.contains_key(&f) {
                continue;
            }
            let by = callers[f as usize].iter().map(|c| owners[*c as usize]);
            let by: BTreeSet<_> = by.collect();
            let part = match by.iter().copied().collect::<Vec<_>>()[..] {
                [Some(GPU)] => GPU,
                [Some(SELDOM)] => SELDOM,
                [Some(SHADERS)] | [Some(GPU), Some(SHADERS)] => SHADERS,
                _ => continue,
            };
            owners[f as usize] = Some(part);
            moved = true;
        }
        if !moved {
            return;
        }
    }
}
