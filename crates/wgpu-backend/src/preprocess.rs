//! Turns a shader file and a set of definitions into WGSL: `#include "path"`, `#if` / `#elif` /
//! `#else` / `#endif` over `NAME`, `!NAME`, `NAME == value`, `NAME != value` joined by `&&` or `||`
//! (no mixing), and replacement of every identifier that is defined. `build.rs` has taken comments,
//! indentation and empty lines out.

/// Looks a definition up; `None` if there is none.
pub(crate) type Lookup<'a> = &'a dyn Fn(&str) -> Option<String>;

/// The text of the file that an `#include` names; `None` if there is none.
pub(crate) type Files<'a> = &'a dyn Fn(&str) -> Option<&'static str>;

/// Why a shader file cannot be expanded. Shader files are part of the program: these are its bugs.
pub(crate) type Result<T> = std::result::Result<T, String>;

pub(crate) fn expand(source: &str, include: Files, defined: Lookup) -> Result<String> {
    let mut out = String::with_capacity(source.len());
    let mut included = Vec::new();
    expand_into(source, include, defined, &mut included, &mut out)?;
    Ok(out)
}

/// One open `#if`: whether its current branch is taken, and whether one was taken before.
struct Branch {
    taken: bool,
    done: bool,
}

fn expand_into(
    source: &str,
    include: Files,
    defined: Lookup,
    included: &mut Vec<String>,
    out: &mut String,
) -> Result<()> {
    let mut open: Vec<Branch> = Vec::new();
    for line in source.lines() {
        let active = open.iter().all(|b| b.taken);
        let Some(directive) = line.strip_prefix('#') else {
            if active {
                substitute(line, defined, out);
                out.push('\n');
            }
            continue;
        };
        let (word, rest) = directive.split_once(' ').unwrap_or((directive, ""));
        match word {
            "include" if active => {
                let path = rest.trim().trim_matches('"');
                if !included.iter().any(|p| p == path) {
                    included.push(path.to_string());
                    let text = include(path).ok_or_else(|| format!("no shader file `{path}`"))?;
                    expand_into(text, include, defined, included, out)?;
                }
            }
            "include" => {}
            "if" => {
                let taken = active && holds(rest, defined)?;
                open.push(Branch { taken, done: taken });
            }
            "elif" | "else" => {
                let outer = open.iter().rev().skip(1).all(|b| b.taken);
                let branch = open.last_mut().ok_or("#else without #if")?;
                branch.taken = outer && !branch.done && (word == "else" || holds(rest, defined)?);
                branch.done |= branch.taken;
            }
            "endif" => {
                open.pop().ok_or("#endif without #if")?;
            }
            _ => return Err(format!("unknown directive `{line}`")),
        }
    }
    if open.is_empty() {
        Ok(())
    } else {
        Err("#if without #endif".to_string())
    }
}

fn holds(condition: &str, defined: Lookup) -> Result<bool> {
    let term = |t: &str| -> Result<bool> {
        let t = t.trim();
        let value = |name: &str| {
            let name = name.trim();
            defined(name).ok_or_else(|| format!("`{name}` is not defined"))
        };
        if let Some((name, want)) = t.split_once("==") {
            return Ok(value(name)? == want.trim());
        }
        if let Some((name, want)) = t.split_once("!=") {
            return Ok(value(name)? != want.trim());
        }
        match t.strip_prefix('!') {
            Some(name) => Ok(value(name)? == "0"),
            None => Ok(value(t)? != "0"),
        }
    };
    if condition.contains("||") {
        for t in condition.split("||") {
            if term(t)? {
                return Ok(true);
            }
        }
        return Ok(false);
    }
    for t in condition.split("&&") {
        if !term(t)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn substitute(line: &str, defined: Lookup, out: &mut String) {
    let mut rest = line;
    while let Some(start) = rest.find(|c: char| c.is_ascii_alphanumeric() || c == '_') {
        out.push_str(&rest[..start]);
        rest = &rest[start..];
        let end = rest
            .find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
            .unwrap_or(rest.len());
        let word = &rest[..end];
        match defined(word) {
            Some(value) => out.push_str(&value),
            None => out.push_str(word),
        }
        rest = &rest[end..];
    }
    out.push_str(rest);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(source: &str) -> Result<String> {
        let include = |p: &str| (p == "a.wgsl").then_some("shared T;");
        let defined = |n: &str| match n {
            "T" => Some("f32".to_string()),
            "ON" => Some("1".to_string()),
            "OFF" => Some("0".to_string()),
            _ => None,
        };
        expand(source, &include, &defined)
    }

    #[test]
    fn conditions_nest_and_identifiers_are_replaced_whole() {
        let text = "#if OFF\nno\n#elif T == f32 && ON\n#if !ON\nno\n#else\nx: T, TT\n#endif\n#else\nno\n#endif";
        assert_eq!(run(text).unwrap(), "x: f32, TT\n");
        assert_eq!(run("#if OFF || T == f32\nyes\n#endif").unwrap(), "yes\n");
    }

    #[test]
    fn files_are_included_once() {
        let text = "#include \"a.wgsl\"\n#include \"a.wgsl\"";
        assert_eq!(run(text).unwrap(), "shared f32;\n");
    }

    #[test]
    fn mistakes_are_reported() {
        assert!(run("#if ON").is_err());
        assert!(run("#endif").is_err());
        assert!(run("#if WHAT\n#endif").is_err());
        assert!(run("#include \"b.wgsl\"").is_err());
        assert!(run("#pragma").is_err());
    }
}
