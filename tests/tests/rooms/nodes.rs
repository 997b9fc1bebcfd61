//! Passes change the nodes of a graph in one way.

use std::fs;
use std::path::Path;

use super::{code, files};

/// What may be done with the nodes of a graph that a pass only reads.
const READS: &[&str] = &[".iter()", ".len()", ".clone()"];

/// The places of `text` where the nodes of a graph are written, or may be.
fn writes_of_nodes(text: &str) -> Vec<String> {
    let path = |c: char| c.is_alphanumeric() || "_.".contains(c);
    let mut found = Vec::new();
    for (at, _) in text.match_indices(".nodes") {
        let rest = text[at + ".nodes".len()..].trim_start();
        if rest.starts_with(|c: char| c.is_alphanumeric() || c == '_') {
            continue;
        }
        let before = text[..at].trim_end_matches(path);
        let read = READS.iter().any(|read| rest.starts_with(read));
        if !read && !before.ends_with('&') {
            let line = text[..at].matches('\n').count();
            found.push(
                text.lines()
                    .nth(line)
                    .unwrap_or_default()
                    .trim()
                    .to_string(),
            );
        }
    }
    // What appends a node to a graph.
    for call in ["graph.apply(", ".apply_shared(", ".push_shared("] {
        let lines = text.lines().filter(|line| line.contains(call));
        found.extend(lines.map(|line| line.trim().to_string()));
    }
    found
}

#[test]
fn passes_change_nodes_by_patches_alone() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/core/src/passes");
    let mut wrong = Vec::new();
    for path in files(&src) {
        let own = path.strip_prefix(&src).expect("it is below");
        let own = own.to_string_lossy().replace('\\', "/");
        let of_tests = own.split(['/', '.']).any(|part| part == "tests");
        // The type itself, and a pass that makes a graph of its own.
        if of_tests || own.starts_with("patch/") || own == "quantized/table.rs" {
            continue;
        }
        let text = code(&fs::read_to_string(&path).expect("a file is text"));
        let writes = writes_of_nodes(&text);
        wrong.extend(writes.into_iter().map(|line| format!("{own}: {line}")));
    }
    assert!(
        wrong.is_empty(),
        "passes change the nodes of a graph by a `Patch` (core/src/passes/patch), which checks itself: {wrong:#?}"
    );
}

/// Every way to write nodes is seen, and none to read them.
#[test]
fn writes_of_nodes_are_found() {
    for written in [
        "graph.nodes.push(node);",
        "graph.nodes = kept;",
        "std::mem::take(&mut graph.nodes)",
        "for node in &mut self.graph.nodes {",
        "graph.nodes[i].op = op;",
        "graph.nodes.retain(|_| keep)",
        "(graph.nodes, graph.outputs) = old;",
        "graph.apply(name, op, &[x]);",
    ] {
        assert_eq!(writes_of_nodes(written).len(), 1, "{written}");
    }
    for read in [
        "for node in &graph.nodes {",
        "let node = &graph.nodes[i];",
        "graph.nodes.iter().rev()",
        "graph.nodes_of()",
        "0..self.graph.nodes.len()",
    ] {
        assert!(writes_of_nodes(read).is_empty(), "{read}");
    }
}
