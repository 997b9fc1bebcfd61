//! The texts that the binary carries: without comments and needless blanks, in one file.

use crate::catalog::{Catalog, Shader};

/// For each file its path, the values of its definitions case by case, and its text, each ended by a zero.
pub fn pack(catalog: &Catalog, shaders: &[Shader]) -> String {
    let mut all = String::new();
    for (id, file) in catalog.files.iter().enumerate() {
        let shader = shaders.iter().find(|s| s.id == id);
        let values = shader.map(values).unwrap_or_default();
        let text = squeezed(&file.head.body);
        all.push_str(&format!("{}\0{values}\0{text}\0", file.path));
    }
    all
}

/// A paragraph for each case, with a line for each definition: its name, then its values.
fn values(shader: &Shader) -> String {
    let cases = shader.cases.iter().map(|case| {
        let line = |name: &str, values: &[String]| format!("{name} {}\n", values.join(" "));
        let lines = shader.defines(case).into_iter();
        lines.map(|d| line(&d.name, &d.values)).collect::<String>()
    });
    cases.collect::<Vec<_>>().join("\n")
}

/// Lines stay lines: the preprocessor reads them.
fn squeezed(body: &str) -> String {
    let mut out = String::with_capacity(body.len());
    for line in body.lines() {
        if line.starts_with('#') {
            out.push_str(line);
        } else {
            squeeze(line, &mut out);
        }
        out.push('\n');
    }
    out
}

/// Leaves out the blanks that part neither two words nor two operators (`a - -b`).
fn squeeze(code: &str, out: &mut String) {
    let word = |c: char| c.is_alphanumeric() || c == '_';
    let operator = |c: char| "+-*/%<>=&|^!~".contains(c);
    let mut before = None;
    let mut blank = false;
    for c in code.chars() {
        if c.is_whitespace() {
            blank = true;
            continue;
        }
        if blank && before.is_some_and(|b| word(b) && word(c) || operator(b) && operator(c)) {
            out.push(' ');
        }
        out.push(c);
        before = Some(c);
        blank = false;
    }
}
