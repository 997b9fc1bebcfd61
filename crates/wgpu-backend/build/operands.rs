//! Buffers that depend on a definition: the values of its type hold them.

use crate::head::{Define, Operand, Presence, Result};
use crate::preprocess;
use crate::writer::{Writer, camel, variant};

/// A definition whose values bring buffers.
pub struct Payload {
    pub define: String,
    /// For each value its name and what it holds.
    values: Vec<(String, Vec<Held>)>,
}

/// One buffer, or several that are numbered.
struct Held {
    name: String,
    written: bool,
    /// How many, where they are numbered.
    count: Option<usize>,
}

/// The type of a field that has a buffer.
pub fn type_of(operand: &Operand) -> &'static str {
    named(operand.written).0
}

/// What gives a buffer to a call.
pub fn method(operand: &Operand) -> &'static str {
    named(operand.written).1
}

fn named(written: bool) -> (&'static str, &'static str) {
    match written {
        true => ("crate::shaders::Target", "write"),
        false => ("crate::shaders::Operand", "read"),
    }
}

/// What the values of `define` bring; `None` if no buffer depends on it.
pub fn payload(define: &Define, operands: &[Operand]) -> Result<Option<Payload>> {
    let depends = |o: &&Operand| matches!(&o.presence, Presence::Where { define: d, .. } if *d == define.name);
    let mut places = operands.iter().enumerate().filter(|(_, o)| depends(o));
    let Some((first, _)) = places.next() else {
        return Ok(None);
    };
    let own: Vec<&Operand> = operands.iter().filter(depends).collect();
    if !operands[first..first + own.len()]
        .iter()
        .all(|o| depends(&o))
    {
        return Err(format!(
            "the buffers of `{}` do not follow each other",
            define.name
        ));
    }
    let mut values = Vec::new();
    for value in &define.values {
        let mut held: Vec<Held> = Vec::new();
        for operand in &own {
            let Presence::Where { condition, .. } = &operand.presence else {
                continue;
            };
            let defined = |name: &str| (name == define.name).then_some(value.as_str());
            if preprocess::holds(condition, &defined)? {
                hold(operand, &mut held);
            }
        }
        values.push((value.clone(), held));
    }
    let define = define.name.clone();
    Ok(Some(Payload { define, values }))
}

/// Buffers `part0`, `part1`, ... are one field `part`.
fn hold(operand: &Operand, held: &mut Vec<Held>) {
    let stem = operand.name.trim_end_matches(|c: char| c.is_ascii_digit());
    match held.last_mut() {
        Some(Held {
            name,
            count: Some(n),
            ..
        }) if name == stem => *n += 1,
        _ => held.push(Held {
            name: stem.to_string(),
            written: operand.written,
            count: (stem != operand.name).then_some(1),
        }),
    }
}

impl Payload {
    /// The field of a launch that has the value.
    pub fn field(&self) -> String {
        self.define.to_lowercase()
    }

    /// The pattern of a value's variant, whatever buffers it has.
    pub fn pattern(&self, value: &str) -> String {
        let held = self.values.iter().find(|(name, _)| name == value);
        match held.is_some_and(|(_, held)| !held.is_empty()) {
            true => format!("{} {{ .. }}", variant(value)),
            false => variant(value),
        }
    }

    /// The type, with the place of each value.
    pub fn write(&self, w: &mut Writer, define: &Define) {
        let name = camel(&self.define);
        w.line(&format!(
            "/// One of {}, with its buffers.",
            define.values.join(", ")
        ));
        w.line("#[derive(Clone, Copy, Debug, PartialEq, Eq)]");
        w.line(&format!("pub(crate) enum {name} {{"));
        for (value, held) in &self.values {
            let fields = held.iter().map(|h| {
                let (kind, _) = named(h.written);
                match h.count {
                    Some(n) => format!("{}: [{kind}; {n}]", h.name),
                    None => format!("{}: {kind}", h.name),
                }
            });
            let fields = fields.collect::<Vec<_>>().join(", ");
            match fields.is_empty() {
                true => w.line(&format!("{},", variant(value))),
                false => w.line(&format!("{} {{ {fields} }},", variant(value))),
            }
        }
        w.line("}");
        w.line(&format!("impl {name} {{"));
        w.line("fn place(&self) -> u16 {");
        w.line("match self {");
        for (i, (value, held)) in self.values.iter().enumerate() {
            let rest = if held.is_empty() { "" } else { " { .. }" };
            w.line(&format!("{name}::{}{rest} => {i},", variant(value)));
        }
        w.line("}");
        w.line("}");
        w.line("}");
    }

    /// Gives the buffers to the call.
    pub fn give(&self, w: &mut Writer) {
        w.line(&format!("match launch.{} {{", self.field()));
        for (value, held) in &self.values {
            let names: Vec<&str> = held.iter().map(|h| h.name.as_str()).collect();
            let pattern = match names.is_empty() {
                true => String::new(),
                false => format!(" {{ {} }}", names.join(", ")),
            };
            let value = variant(value);
            w.line(&format!("{}::{value}{pattern} => {{", camel(&self.define)));
            for h in held {
                let (name, (_, give)) = (&h.name, named(h.written));
                match h.count {
                    Some(_) => w.line(&format!("call.{give}_all(&{name});")),
                    None => w.line(&format!("call.{give}({name});")),
                }
            }
            w.line("}");
        }
        w.line("}");
    }
}
