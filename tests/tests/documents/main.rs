//! What the documents name is there: paths, and the tests that `docs/evidence.md` has for abilities of the backend API.

#![cfg(not(target_arch = "wasm32"))]

mod blocks;
mod comments;

use std::path::{Path, PathBuf};

use kilim_test_support::material::root;

/// The files below a folder whose names end so.
fn files_below(folder: &Path, endings: &[&str], found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let name = entry.file_name();
        let ours =
            name != "target" && name != "node_modules" && !name.to_string_lossy().starts_with('.');
        if path.is_dir() && ours {
            files_below(&path, endings, found);
        } else if path
            .extension()
            .is_some_and(|e| endings.iter().any(|f| e == *f))
        {
            found.push(path);
        }
    }
}

/// The source files below a folder.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    files_below(folder, &["rs", "mjs"], found);
}

/// The files of tests that are called `name`: a file or a folder of tests, a module, or a crate.
fn files<'a>(all: &'a [PathBuf], name: &str) -> Vec<&'a PathBuf> {
    let root = root();
    let is = |path: &Path| match name.strip_suffix(".test") {
        Some(name) => path == root.join(format!("www/test/{name}.test.mjs")),
        None => {
            let below = |folder: &str| path.starts_with(root.join(folder).join(name));
            let plain = path.file_stem().is_some_and(|stem| stem == name);
            let folder = path.parent().is_some_and(|f| f.ends_with(name));
            let crates = ["", "crates", "tests/tests", "crates/cli/tests"];
            plain || folder || crates.into_iter().any(below)
        }
    };
    all.iter().filter(|path| is(path)).collect()
}

/// The names of the tests in a file.
fn tests(file: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(file).unwrap();
    if file.extension().is_some_and(|e| e == "mjs") {
        let calls = text.split("test(").skip(1);
        let titles = calls.filter_map(|rest| {
            let quote = rest.chars().next().filter(|c| "'`\"".contains(*c))?;
            rest[1..].split(quote).next().map(str::to_string)
        });
        return titles.collect();
    }
    let marked = text.split("#[test]").skip(1);
    let names = marked.filter_map(|rest| {
        let (_, rest) = rest.split_once("fn ")?;
        rest.split_once('(').map(|(name, _)| name.to_string())
    });
    names.collect()
}

/// Whether a name fits a pattern in which `…` stands for anything.
fn fits(name: &str, pattern: &str) -> bool {
    let mut parts = pattern.split('…');
    let Some(mut rest) = parts.next().and_then(|first| name.strip_prefix(first)) else {
        return false;
    };
    let mut parts = parts.peekable();
    while let Some(part) = parts.next() {
        let at = match parts.peek() {
            Some(_) => rest.find(part),
            None if part.is_empty() => return true,
            None => rest.rfind(part).filter(|at| at + part.len() == rest.len()),
        };
        match at {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.is_empty()
}

/// What a cell names that is not there. A name with a colon behind it is a file, those that follow up
/// to a semicolon are tests in it; a name alone is a file, or a step of `cargo xtask test`.
fn missing(all: &[PathBuf], cell: &str) -> Vec<String> {
    let parts: Vec<&str> = cell.split('`').collect();
    let mut file: Option<&str> = None;
    let mut missing = Vec::new();
    for (i, name) in parts.iter().enumerate().skip(1).step_by(2) {
        if parts[i - 1].contains(';') {
            file = None;
        }
        let heads = parts.get(i + 1).is_some_and(|after| after.starts_with(':'));
        let there = match file {
            Some(file) if !heads => {
                let mut names = files(all, file).into_iter().flat_map(|f| tests(f));
                names.any(|n| fits(&n, name))
            }
            _ if name.starts_with("cargo xtask test ") => {
                let steps = std::fs::read_to_string(root().join("xtask/src/test/mod.rs")).unwrap();
                steps.contains(name.trim_start_matches("cargo xtask test "))
            }
            _ => !files(all, name).is_empty(),
        };
        if heads {
            file = Some(name);
        }
        if !there {
            missing.push(format!(
                "{}{name}",
                file.map_or(String::new(), |f| format!("{f}: "))
            ));
        }
    }
    missing
}

/// The paths that a document names in backquotes, and those that it links to.
fn paths(text: &str) -> Vec<&str> {
    let prose = text.split("```").step_by(2);
    let named = prose.flat_map(|part| {
        let plain = |name: &&str| {
            let ends = name.ends_with('/') || Path::new(name).extension().is_some();
            let letter = |c: char| c.is_alphanumeric() || "/._-".contains(c);
            name.contains('/') && ends && name.chars().all(letter)
        };
        let quoted = part.split('`').skip(1).step_by(2).filter(plain);
        let links = part.split("](").skip(1);
        let links = links.filter_map(|rest| rest.split([')', '#']).next());
        quoted.chain(links.filter(|l| !l.is_empty() && !l.contains("://")))
    });
    named.collect()
}

#[test]
fn the_paths_that_documents_name_are_there() {
    let root = root();
    let mut documents = Vec::new();
    files_below(&root, &["md"], &mut documents);
    let (mut named, mut wrong) = (0, Vec::new());
    for document in documents {
        let text = std::fs::read_to_string(&document).unwrap();
        let own = document.parent().unwrap();
        for path in paths(&text) {
            named += 1;
            let from = [own, &root, &root.join("crates")];
            let built = path.starts_with("target/");
            if !built && !from.iter().any(|folder| folder.join(path).exists()) {
                wrong.push(format!("{}: {path}", document.display()));
            }
        }
    }
    assert!(named > 100, "{named} paths");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_tests_that_show_an_ability_are_there() {
    let root = root();
    let mut all = Vec::new();
    for folder in ["tests", "crates", "www/test", "xtask"] {
        sources(&root.join(folder), &mut all);
    }
    let text = std::fs::read_to_string(root.join("docs/evidence.md")).unwrap();
    let mut shown = 0;
    let mut wrong = Vec::new();
    let mut in_table = false;
    for line in text.lines() {
        let row = line
            .strip_prefix('|')
            .and_then(|l| l.trim_end().strip_suffix('|'));
        let Some(row) = row else {
            in_table = false;
            continue;
        };
        let cell = row.rsplit(" | ").next().unwrap_or_default().trim();
        if cell == "shown by" {
            in_table = true;
        } else if in_table && !cell.contains("---") {
            shown += 1;
            if !cell.contains('`') {
                wrong.push(format!("nothing is named in {row}"));
            }
            wrong.extend(missing(&all, cell));
        }
    }
    assert!(shown > 50, "{shown} rows");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_test_that_is_gone_is_noticed() {
    let mut all = Vec::new();
    sources(&root().join("tests"), &mut all);
    let here = "`documents`: `a_test_that_is_gone_…`, `the_tests_…_are_there` (both); `fuzz`";
    assert!(missing(&all, here).is_empty());
    let gone = "`documents`: `a_test_that_was_gone_…`; `no_such_file`: `x`; `nowhere`";
    assert_eq!(missing(&all, gone).len(), 4);
    assert!(fits("abc", "a…c") && fits("abc", "…") && !fits("abc", "a…b") && !fits("abc", "b…"));
}
