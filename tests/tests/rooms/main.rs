//! The folders of a crate are rooms in an order: a file names what is in its own room or in one further down.

#![cfg(not(target_arch = "wasm32"))]

mod asks;
mod globs;
mod nodes;

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

/// A crate and its rooms from the bottom to the top. Those that share a line do not know each other.
struct House {
    name: &'static str,
    floors: &'static [&'static [&'static str]],
}

const HOUSES: &[House] = &[
    House {
        name: "core",
        floors: &[
            &["dim", "dtype", "ids", "nearest", "short", "threading"],
            &["error"],
            &["fallible", "limits"],
            &["interrupt", "narrow"],
            &["order", "tensor"],
            &["reflect"],
            &["device_tensor"],
            &["datum", "fixed", "user_memory"],
            &["fact"],
            &["graph"],
            &["executable", "memory", "ops", "tuning"],
            &["schedule"],
            &["backend"],
            &["builtin", "partition", "pin", "report"],
            &["passes", "stages"],
            &["session"],
            &["calibrate"],
            &["testing"],
        ],
    },
    House {
        name: "wgpu-backend",
        floors: &[
            &["shaders"],
            &["device"],
            &["lowering"],
            &["kernels", "executable"],
            &["context"],
            &["backend"],
        ],
    },
    House {
        name: "host",
        floors: &[
            &["threads", "testing"],
            &["work"],
            &["elements"],
            &["kernel"],
            &["registry", "rules"],
            &["executable"],
            &["context"],
            &["backend"],
        ],
    },
    House {
        name: "reference-cpu",
        floors: &[
            &["common", "testing"],
            &[
                "attention",
                "custom",
                "generate",
                "learn",
                "matmul",
                "pool",
                "reduce",
                "text",
            ],
            &["elementwise", "norm", "resize", "sort"],
            &["index", "movement"],
            &["conv"],
            &["quant"],
            &["recurrent"],
        ],
    },
    House {
        name: "simd-cpu",
        floors: &[
            &["isa", "memory", "testing", "window"],
            &["cast", "gemm", "math", "reduce", "transpose"],
            &[
                "arg",
                "attention",
                "binary",
                "conv",
                "matmul",
                "pool",
                "rotary",
                "rows",
                "unary",
            ],
            &["quantized", "recurrent"],
            &["roofline"],
        ],
    },
];

impl House {
    fn floor(&self, room: &str) -> Option<usize> {
        self.floors.iter().position(|rooms| rooms.contains(&room))
    }

    /// What a file of `room`, `depth` modules below the root of the crate, names though it may not. `root` says in which
    /// rooms those names are that the root gives on.
    fn upward(&self, room: &str, depth: usize, text: &str, root: &Root) -> Vec<String> {
        let own = self.floor(room);
        let up = |other: &String| other != room && self.floor(other) >= own;
        let mut named = named(text, "crate::");
        // `super::` once for each module on the way leads to the root.
        named.extend(self::named(text, &"super::".repeat(depth)));
        let rooms = named.into_iter().map(|name| match root.get(&name) {
            Some(room) => room.clone(),
            None => name,
        });
        let rooms = rooms.filter(|room| self.floor(room).is_some());
        rooms.filter(up).collect()
    }
}

/// The rooms of the names that the root of a crate gives on.
type Root = HashMap<String, String>;

/// The names behind every `pub use` of a `lib.rs`.
fn root(text: &str) -> Root {
    let mut root = Root::new();
    for used in text.split("pub use ").skip(1) {
        let used = used.split(';').next().unwrap_or_default();
        let Some((room, names)) = used.split_once("::") else {
            continue;
        };
        let names = names.trim_start_matches('{').trim_end_matches('}');
        let last = |name: &str| word(name.rsplit([':', ' ']).next().unwrap_or_default());
        for name in names.split(',').map(str::trim).map(last) {
            root.insert(name, room.to_string());
        }
    }
    root
}

/// The first names behind every `root`, those of a group in braces each.
fn named(text: &str, root: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices(root) {
        let before = text[..at].chars().next_back();
        if before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':') {
            continue;
        }
        let rest = &text[at + root.len()..];
        match rest.strip_prefix('{') {
            Some(group) => found.extend(group_of(group)),
            None => found.push(word(rest)),
        }
    }
    found
}

fn word(text: &str) -> String {
    let letter = |c: &char| c.is_alphanumeric() || *c == '_';
    text.trim_start().chars().take_while(letter).collect()
}

/// The first name of every member of a group whose brace is open.
fn group_of(text: &str) -> Vec<String> {
    let (mut depth, mut start, mut members) = (0, 0, Vec::new());
    for (at, c) in text.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => {
                members.push(word(&text[start..at]));
                break;
            }
            '}' => depth -= 1,
            ',' if depth == 0 => {
                members.push(word(&text[start..at]));
                start = at + 1;
            }
            _ => {}
        }
    }
    members
}

/// The code of a file: no comments, and no tests, which end it.
fn code(text: &str) -> String {
    let text = text.split("#[cfg(test)]\nmod tests {").next();
    let lines = text.unwrap_or_default().lines();
    let lines = lines.map(|line| line.split("//").next().unwrap_or_default());
    lines.collect::<Vec<_>>().join("\n")
}

/// All files below `dir`, in order.
fn files(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).expect("the folder is there");
    let mut paths: Vec<PathBuf> = entries.map(|e| e.expect("an entry").path()).collect();
    paths.sort();
    let below = |path: PathBuf| match path.is_dir() {
        true => files(&path),
        false => vec![path],
    };
    paths.into_iter().flat_map(below).collect()
}

#[test]
fn no_arrow_leads_up() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates");
    for house in HOUSES {
        let src = crates.join(house.name).join("src");
        let lib = fs::read_to_string(src.join("lib.rs")).expect("a file is text");
        let root = root(&code(&lib));
        let mut wrong = Vec::new();
        for path in files(&src) {
            let own = path.strip_prefix(&src).expect("it is below");
            let modules: Vec<String> = own
                .with_extension("")
                .iter()
                .map(|m| m.to_string_lossy().into_owned())
                .filter(|m| m != "mod")
                .collect();
            let room = &modules[0];
            if room == "lib" || modules.iter().any(|m| m == "tests") {
                continue;
            }
            assert!(
                house.floor(room).is_some(),
                "{}: which floor is `{room}` on?",
                house.name
            );
            let text = fs::read_to_string(&path).expect("a file is text");
            for other in house.upward(room, modules.len(), &code(&text), &root) {
                wrong.push(format!("{} names {other}", own.display()));
            }
        }
        assert!(wrong.is_empty(), "{}: {wrong:#?}", house.name);
    }
}

/// Every way to name a room is seen.
#[test]
fn arrows_are_found() {
    let lib = "mod gpu;\npub use context::Context;\npub use backend::{Backend, Kind as What};";
    let root = root(lib);
    let house = House {
        name: "an example",
        floors: &[
            &["device"],
            &["lowering"],
            &["kernels", "executable"],
            &["context"],
            &["backend"],
        ],
    };
    let up = |depth, text: &str| house.upward("lowering", depth, &code(text), &root);
    assert_eq!(up(2, "use crate::kernels::Kernels;"), ["kernels"]);
    assert_eq!(up(2, "let x = crate::executable::X;"), ["executable"]);
    let group = "use crate::{device::{gpu, kernels}, other,\n    context::Context};";
    assert_eq!(up(2, group), ["context"]);
    assert_eq!(up(2, "use super::super::backend;"), ["backend"]);
    assert_eq!(up(1, "use super::kernels;"), ["kernels"]);
    assert!(up(2, "use super::kernels;").is_empty());
    assert!(up(2, "// crate::kernels\nuse crate::lowering::walk;").is_empty());
    assert!(up(2, "use other_crate::kernels;").is_empty());
    assert_eq!(up(2, "use crate::Context;"), ["context"]);
    assert_eq!(up(2, "let x: crate::What;"), ["backend"]);
    let beside = house.upward("kernels", 2, "use crate::executable;", &root);
    assert_eq!(beside, ["executable"]);
}
