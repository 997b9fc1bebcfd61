//! The texts that the binary carries: without comments and needless blanks, each with what it includes, so that a part of the web binary
//! carries what its functions launch.

use crate::catalog::{Catalog, Shader};
use crate::head::Result;
use crate::writer::{Writer, constant};

/// A static for every file that has a text, not declarations alone.
///
/// # Errors
/// Where an included file is not there.
pub fn statics(w: &mut Writer, catalog: &Catalog, shaders: &[Shader]) -> Result<()> {
    for (id, file) in catalog.files.iter().enumerate() {
        let shader = shaders.iter().find(|s| s.id == id);
        let values = shader.map(values).unwrap_or_default();
        let text = squeezed(&file.head.body);
        if text.is_empty() {
            continue;
        }
        let includes = catalog.includes(file)?;
        let includes = includes.iter().map(|f| format!("&{}", constant(&f.path)));
        let includes = includes.collect::<Vec<_>>().join(", ");
        w.line(&format!("/// `{}`.", file.path));
        w.line(&format!(
            "pub(crate) static {}: crate::shaders::File = crate::shaders::File {{",
            constant(&file.path)
        ));
        w.line(&format!("id: {id},"));
        w.line(&format!("path: {:?},", file.path));
        w.line(&format!("values: {values:?},"));
        w.line(&format!("text: {text:?},"));
        w.line(&format!("includes: &[{includes}],"));
        w.line("};");
    }
    Ok(())
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
