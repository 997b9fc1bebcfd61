//! Turns a shader file and a set of definitions into WGSL: `#include "path"`, `#if` / `#elif` /
//! `#else` / `#endif` over `NAME`, `!NAME`, `NAME == value`, `NAME != value`, `NAME >= number` joined by
//! `&&` or `||` (no mixing), `#read name:type` and `#write name:type` for storage buffers, and replacement
//! of every identifier that is defined. The build script has taken comments, declarations, indentation and
//! empty lines out; it is the other user of this file.

/// Looks a definition up; `None` if there is none.
pub(crate) type Defined<'a> = &'a dyn Fn(&str) -> Option<&'a str>;

/// The text of the file that an `#include` names; `None` if there is none.
pub(crate) type Files<'a> = &'a dyn Fn(&str) -> Option<&'a str>;

/// Whether the storage buffer of this place, counted from 0, is bound for reading only.
pub(crate) type ReadOnly<'a> = &'a dyn Fn(usize) -> bool;

/// Why a shader file cannot be expanded. Shader files are part of the program: these are its bugs.
pub(crate) type Result<T> = std::result::Result<T, String>;

/// The WGSL of `source`. Storage buffers are bound from binding 1 on.
pub(crate) fn expand<'a>(
    source: &'a str,
    include: Files<'a>,
    defined: Defined<'a>,
    read_only: ReadOnly<'a>,
) -> Result<String> {
    let mut expansion = Expansion {
        include,
        defined,
        read_only,
        included: Vec::new(),
        buffers: 0,
        out: String::with_capacity(source.len()),
    };
    expansion.file(source)?;
    Ok(expansion.out)
}

/// One open `#if`: whether its current branch is taken, and whether one was taken before.
struct Branch {
    taken: bool,
    done: bool,
}

struct Expansion<'a> {
    include: Files<'a>,
    defined: Defined<'a>,
    read_only: ReadOnly<'a>,
    included: Vec<&'a str>,
    /// How many storage buffers are bound.
    buffers: usize,
    out: String,
}

impl<'a> Expansion<'a> {
    fn file(&mut self, source: &'a str) -> Result<()> {
        let mut open: Vec<Branch> = Vec::new();
        for line in source.lines() {
            let active = open.iter().all(|b| b.taken);
            let Some(directive) = line.strip_prefix('#') else {
                if active {
                    substitute(line, self.defined, &mut self.out);
                    self.out.push('\n');
                }
                continue;
            };
            let (word, rest) = directive.split_once(' ').unwrap_or((directive, ""));
            match word {
                "if" => {
                    let taken = active && holds(rest, self.defined)?;
                    open.push(Branch { taken, done: taken });
                }
                "elif" | "else" => {
                    let outer = open.iter().rev().skip(1).all(|b| b.taken);
                    let branch = open.last_mut().ok_or("#else without #if")?;
                    let holds = || Ok::<_, String>(word == "else" || holds(rest, self.defined)?);
                    branch.taken = outer && !branch.done && holds()?;
                    branch.done |= branch.taken;
                }
                "endif" => {
                    open.pop().ok_or("#endif without #if")?;
                }
                "include" | "read" | "write" if !active => {}
                "include" => self.include(rest.trim().trim_matches('"'))?,
                "read" => {
                    let read_only = (self.read_only)(self.buffers);
                    self.bind(rest, read_only)?;
                }
                "write" => self.bind(rest, false)?,
                _ => return Err(format!("unknown directive `{line}`")),
            }
        }
        match open.is_empty() {
            true => Ok(()),
            false => Err("#if without #endif".to_string()),
        }
    }

    fn include(&mut self, path: &'a str) -> Result<()> {
        if self.included.contains(&path) {
            return Ok(());
        }
        self.included.push(path);
        let text = (self.include)(path).ok_or_else(|| format!("no shader file `{path}`"))?;
        self.file(text)
    }

    /// Declares a storage buffer, `name:type`.
    fn bind(&mut self, buffer: &str, read_only: bool) -> Result<()> {
        let (name, element) = buffer
            .split_once(':')
            .ok_or_else(|| format!("`{buffer}` has no type"))?;
        self.buffers += 1;
        let (at, access) = (self.buffers, if read_only { "read" } else { "read_write" });
        let head = format!("@group(0)@binding({at})var<storage,{access}>{name}:");
        self.out.push_str(&head);
        substitute(element, self.defined, &mut self.out);
        self.out.push_str(";\n");
        Ok(())
    }
}

/// Whether a condition is met.
pub(crate) fn holds(condition: &str, defined: Defined) -> Result<bool> {
    let term = |t: &str| -> Result<bool> {
        let t = t.trim();
        let value = |name: &str| {
            let name = name.trim();
            defined(name).ok_or_else(|| format!("`{name}` is not defined"))
        };
        if let Some((name, want)) = t.split_once("==") {
            // The right side may be a definition, too.
            let want = want.trim();
            return Ok(value(name)? == defined(want).unwrap_or(want));
        }
        if let Some((name, want)) = t.split_once("!=") {
            return Ok(value(name)? != want.trim());
        }
        if let Some((name, least)) = t.split_once(">=") {
            return Ok(number(value(name)?)? >= number(least.trim())?);
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

fn number(text: &str) -> Result<u32> {
    text.parse().map_err(|_| format!("`{text}` is no number"))
}

fn substitute(line: &str, defined: Defined, out: &mut String) {
    let mut rest = line;
    while let Some(start) = rest.find(|c: char| c.is_ascii_alphanumeric() || c == '_') {
        out.push_str(&rest[..start]);
        rest = &rest[start..];
        let end = rest
            .find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
            .unwrap_or(rest.len());
        let word = &rest[..end];
        match defined(word) {
            Some(value) => out.push_str(value),
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
            "T" | "U" => Some("f32"),
            "ON" => Some("1"),
            "OFF" => Some("0"),
            "COUNT" => Some("3"),
            _ => None,
        };
        expand(source, &include, &defined, &|i| i == 0)
    }

    #[test]
    fn conditions_nest_and_identifiers_are_replaced_whole() {
        let text = "#if OFF\nno\n#elif T == f32 && ON\n#if !ON\nno\n#else\nx: T, TT\n#endif\n#else\nno\n#endif";
        assert_eq!(run(text).unwrap(), "x: f32, TT\n");
        assert_eq!(run("#if OFF || T == f32\nyes\n#endif").unwrap(), "yes\n");
        assert_eq!(
            run("#if T == U && COUNT >= 3\nyes\n#endif").unwrap(),
            "yes\n"
        );
        assert_eq!(run("#if COUNT >= 4\nno\n#endif").unwrap(), "");
    }

    #[test]
    fn files_are_included_once() {
        let text = "#include \"a.wgsl\"\n#include \"a.wgsl\"";
        assert_eq!(run(text).unwrap(), "shared f32;\n");
    }

    #[test]
    fn buffers_are_bound_in_their_order() {
        let text = "#read a:array<T>\n#if OFF\n#read b:array<T>\n#endif\n#read c:u32\n#write d:T";
        let want = [
            "@group(0)@binding(1)var<storage,read>a:array<f32>;",
            "@group(0)@binding(2)var<storage,read_write>c:u32;",
            "@group(0)@binding(3)var<storage,read_write>d:f32;",
            "",
        ];
        assert_eq!(run(text).unwrap(), want.join("\n"));
    }

    #[test]
    fn mistakes_are_reported() {
        assert!(run("#if ON").is_err());
        assert!(run("#endif").is_err());
        assert!(run("#if WHAT\n#endif").is_err());
        assert!(run("#include \"b.wgsl\"").is_err());
        assert!(run("#pragma").is_err());
        assert!(run("#read a").is_err());
        assert!(run("#if T >= 2\n#endif").is_err());
    }
}
