//! What a shader file declares: `#type`, `#define`, `#case`, `#read`, `#write`, `#fault`
//! (`shaders/README.md` says what each means).

use std::collections::BTreeMap;

/// What is wrong with a shader file.
pub type Result<T> = std::result::Result<T, String>;

/// A definition and the values that it may have.
#[derive(Clone, Debug, PartialEq)]
pub struct Define {
    pub name: String,
    pub values: Vec<String>,
    /// The `#type` that the values are of.
    pub named: Option<String>,
}

impl Define {
    /// Whether it is 0 or 1.
    pub fn is_bool(&self) -> bool {
        self.named.as_deref() == Some("bool")
    }

    fn flag(name: String) -> Define {
        Define {
            name,
            values: vec!["0".into(), "1".into()],
            named: Some("bool".into()),
        }
    }
}

/// Definitions that may be combined in any way.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Case {
    pub name: String,
    pub defines: Vec<Define>,
}

/// When a buffer is bound.
#[derive(Clone, Debug, PartialEq)]
pub enum Presence {
    Always,
    /// Where `HAS_` and its name in capitals is 1.
    Optional,
    /// Where a condition on the definition of this name holds.
    Where {
        define: String,
        condition: String,
    },
}

/// A storage buffer.
#[derive(Clone, Debug, PartialEq)]
pub struct Operand {
    pub name: String,
    pub element: String,
    pub written: bool,
    pub presence: Presence,
}

impl Operand {
    /// The definition that says whether an optional buffer is there.
    pub fn flag(&self) -> String {
        format!("HAS_{}", self.name.to_uppercase())
    }

    /// The condition under which it is bound.
    fn condition(&self) -> Option<String> {
        match &self.presence {
            Presence::Always => None,
            Presence::Optional => Some(self.flag()),
            Presence::Where { condition, .. } => Some(condition.clone()),
        }
    }
}

/// The declarations of a file and the text that is left.
#[derive(Debug, Default)]
pub struct Head {
    /// Definitions in front of the first `#case`.
    pub common: Vec<Define>,
    pub cases: Vec<Case>,
    /// Buffers, with the operands of included files in their place.
    pub operands: Vec<Item>,
    /// The text without declarations; of buffers, what the preprocessor binds is left.
    pub body: String,
}

/// What buffers come from.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    Operand(Operand),
    Include { path: String, conditional: bool },
}

/// The values of each `#type`.
pub type Types = BTreeMap<String, Vec<String>>;

/// The `#type`s of a text.
pub fn types(text: &str) -> Result<Vec<(String, Vec<String>)>> {
    let lines = logical_lines(text).into_iter();
    let declared = lines.filter_map(|line| {
        let (name, values) = line.strip_prefix("#type ")?.split_once(' ')?;
        Some((name.to_string(), words(values)))
    });
    declared
        .map(|(name, values)| match values.len() {
            0 | 1 => Err(format!("the type `{name}` has no two values")),
            _ => Ok((name, values)),
        })
        .collect()
}

/// Reads the declarations of a file; `types` are those of all files.
pub fn read(text: &str, types: &Types) -> Result<Head> {
    let mut head = Head::default();
    let mut depth = 0usize;
    for line in logical_lines(text) {
        let (word, rest) = line.split_once(' ').unwrap_or((line.as_str(), ""));
        match word {
            "#if" => depth += 1,
            "#endif" => depth = depth.saturating_sub(1),
            "#type" | "#define" | "#case" | "#read" | "#write" | "#fault" if depth > 0 => {
                return Err(format!("`{line}` stands under a condition"));
            }
            _ => {}
        }
        match word {
            "#type" => {}
            "#case" => head.cases.push(Case {
                name: rest.trim().to_string(),
                defines: Vec::new(),
            }),
            "#define" => {
                let define = define(rest, types)?;
                match head.cases.last_mut() {
                    Some(case) => case.defines.push(define),
                    None => head.common.push(define),
                }
            }
            "#read" | "#write" | "#fault" => {
                let operand = operand(word, rest)?;
                bind(&operand, &mut head.body);
                head.operands.push(Item::Operand(operand));
            }
            "#include" => {
                head.operands.push(Item::Include {
                    path: rest.trim().trim_matches('"').to_string(),
                    conditional: depth > 0,
                });
                push(&mut head.body, &line);
            }
            _ => push(&mut head.body, &line),
        }
    }
    Ok(head)
}

/// Comments and blanks around lines go; a line that ends with `\` goes on in the next.
fn logical_lines(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut open = false;
    for line in text.lines() {
        // WGSL has no strings, so `//` always begins a comment.
        let code = line.split("//").next().unwrap_or_default().trim();
        let (code, goes_on) = match code.strip_suffix('\\') {
            Some(code) => (code.trim(), true),
            None => (code, false),
        };
        match lines.last_mut() {
            Some(last) if open => {
                last.push(' ');
                last.push_str(code);
            }
            _ if code.is_empty() => {}
            _ => lines.push(code.to_string()),
        }
        open = goes_on;
    }
    lines
}

fn push(body: &mut String, line: &str) {
    body.push_str(line);
    body.push('\n');
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_string).collect()
}

/// `NAME: Type` or `NAME = value value`.
fn define(text: &str, types: &Types) -> Result<Define> {
    if let Some((name, named)) = text.split_once(':') {
        let (name, named) = (name.trim().to_string(), named.trim());
        if named == "bool" {
            return Ok(Define::flag(name));
        }
        let values = types
            .get(named)
            .ok_or_else(|| format!("`{name}` is of the type `{named}`, which is not declared"))?;
        return Ok(Define {
            name,
            values: values.clone(),
            named: Some(named.to_string()),
        });
    }
    match text.split_once('=') {
        Some((name, values)) if !words(values).is_empty() => Ok(Define {
            name: name.trim().to_string(),
            values: words(values),
            named: None,
        }),
        _ => Err(format!("`#define {text}` has no values")),
    }
}

/// `NAME: TYPE`, `NAME?: TYPE` or `NAME: TYPE if CONDITION`.
fn operand(word: &str, text: &str) -> Result<Operand> {
    if word == "#fault" {
        return Ok(Operand {
            name: FAULT.into(),
            element: "array<u32>".into(),
            written: true,
            presence: Presence::Always,
        });
    }
    let (name, element) = text
        .split_once(':')
        .ok_or_else(|| format!("`{word} {text}` has no type"))?;
    let (element, condition) = match element.split_once(" if ") {
        Some((element, condition)) => (element, Some(condition.trim())),
        None => (element, None),
    };
    let presence = match (name.trim().strip_suffix('?'), condition) {
        (Some(_), None) => Presence::Optional,
        (None, None) => Presence::Always,
        (None, Some(condition)) => Presence::Where {
            define: words(condition).swap_remove(0),
            condition: condition.to_string(),
        },
        (Some(_), Some(_)) => return Err(format!("`{text}` has two conditions")),
    };
    Ok(Operand {
        name: name.trim().trim_end_matches('?').to_string(),
        element: element.trim().to_string(),
        written: word == "#write",
        presence,
    })
}

/// The buffer of `#fault`, which is not given by kernels.
pub const FAULT: &str = "fault";

/// Leaves in the text what the preprocessor makes a binding of.
fn bind(operand: &Operand, body: &mut String) {
    let word = if operand.written { "#write" } else { "#read" };
    let line = format!("{word} {}:{}", operand.name, operand.element);
    match operand.condition() {
        Some(condition) => push(body, &format!("#if {condition}\n{line}\n#endif")),
        None => push(body, &line),
    }
}

/// Definitions that say whether optional buffers are there.
pub fn flags(operands: &[Operand]) -> Vec<Define> {
    let optional = operands.iter().filter(|o| o.presence == Presence::Optional);
    optional.map(|o| Define::flag(o.flag())).collect()
}
