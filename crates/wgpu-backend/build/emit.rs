//! The Rust of the entries: for each shader a module with its definitions, buffers and parameters as types.

use std::collections::BTreeMap;

use crate::catalog::{Catalog, Shader};
use crate::head::{Case, Define, FAULT, Operand, Presence, Result};
use crate::layout::{Field, Kind, Layout, Structs};
use crate::operands::{self, Payload};
use crate::writer::{Writer, camel, constant, variant};

/// Everything that shaders are launched by.
pub fn entries(
    w: &mut Writer,
    catalog: &Catalog,
    shaders: &[(Shader, Layout)],
    structs: &Structs,
) -> Result<()> {
    let linear = shaders.iter().find_map(|(_, layout)| layout.linear);
    let linear = linear.ok_or("no shader counts its threads by `linear_id`")?;
    w.line("/// Threads of a workgroup in kernels that treat elements one by one.");
    w.line(&format!("pub(crate) const LINEAR: usize = {linear};"));
    for (name, values) in &catalog.types {
        plain_enum(w, name, values);
    }
    for (name, fields) in structs {
        structure(w, name, fields, structs);
    }
    modules(w, catalog, shaders, structs)
}

/// A module for each folder, with one for each file that has something to say.
fn modules(
    w: &mut Writer,
    catalog: &Catalog,
    shaders: &[(Shader, Layout)],
    structs: &Structs,
) -> Result<()> {
    let mut families: BTreeMap<&str, Writer> = BTreeMap::new();
    for (id, file) in catalog.files.iter().enumerate() {
        let (family, name) = file.path.split_once('/').unwrap_or(("", &file.path));
        let name = name.trim_end_matches(".wgsl");
        let shader = shaders.iter().find(|(s, _)| s.id == id);
        if shader.is_none() && file.head.cases.is_empty() {
            continue;
        }
        let w = families.entry(family).or_default();
        w.line(&format!("/// `{}`.", file.path));
        w.line(&format!("pub(crate) mod {name} {{"));
        if !file.head.cases.is_empty() {
            case_types(w, &file.head.cases);
        }
        if let Some((shader, layout)) = shader {
            let entry = Entry {
                shader,
                layout,
                structs,
            };
            entry.write(w).map_err(|e| format!("{}: {e}", file.path))?;
        }
        w.line("}");
    }
    for (family, inner) in families {
        w.line(&format!("pub(crate) mod {family} {{"));
        w.lines(&inner.finish());
        w.line("}");
    }
    Ok(())
}

const DERIVE: &str = "#[derive(Clone, Copy, Debug, PartialEq, Eq)]";

fn plain_enum(w: &mut Writer, name: &str, values: &[String]) {
    w.line(&format!("/// One of {}.", values.join(", ")));
    w.line(DERIVE);
    w.line(&format!("pub(crate) enum {name} {{"));
    for value in values {
        w.line(&format!("{},", variant(value)));
    }
    w.line("}");
}

/// The types of definitions that belong to single cases, and the choice between these.
fn case_types(w: &mut Writer, cases: &[Case]) {
    for case in cases {
        for define in case.defines.iter().filter(|d| is_own(d)) {
            plain_enum(w, &own_type(define, Some(case)), &define.values);
        }
    }
    w.line("/// Which definitions go together.");
    w.line(DERIVE);
    w.line("pub(crate) enum Case {");
    for case in cases {
        let fields = case.defines.iter().filter(|d| d.values.len() > 1);
        let fields = fields.map(|d| format!("{}: {}", field(d), type_of(d, Some(case))));
        let fields = fields.collect::<Vec<_>>();
        match fields.is_empty() {
            true => w.line(&format!("{},", case.name)),
            false => w.line(&format!("{} {{ {} }},", case.name, fields.join(", "))),
        }
    }
    w.line("}");
}

/// Whether a definition has a type of its own.
fn is_own(define: &Define) -> bool {
    define.named.is_none() && define.values.len() > 1
}

fn own_type(define: &Define, case: Option<&Case>) -> String {
    let case = case.map_or("", |c| &c.name);
    format!("{case}{}", camel(&define.name))
}

fn type_of(define: &Define, case: Option<&Case>) -> String {
    match &define.named {
        Some(_) if define.is_bool() => "bool".into(),
        Some(name) => format!("crate::shaders::{name}"),
        None => own_type(define, case),
    }
}

/// The field that has a definition's value.
fn field(define: &Define) -> String {
    define.name.to_lowercase()
}

fn has_lists(fields: &[Field], structs: &Structs) -> bool {
    fields.iter().any(|f| match &f.kind {
        Kind::List(_) | Kind::SignedList(_) => true,
        Kind::Struct(name) => has_lists(&structs[name], structs),
        _ => false,
    })
}

fn lifetime(fields: &[Field], structs: &Structs) -> &'static str {
    if has_lists(fields, structs) {
        "<'a>"
    } else {
        ""
    }
}

/// The host's side of a structure: sizes are `usize`, and become words where they fit.
fn structure(w: &mut Writer, name: &str, fields: &[Field], structs: &Structs) {
    let own = lifetime(fields, structs);
    w.line(&format!("/// The structure `{name}` of the shaders."));
    w.line("#[derive(Clone, Copy, Debug, Default)]");
    w.line(&format!("pub(crate) struct {name}{own} {{"));
    for field in fields {
        let kind = match &field.kind {
            Kind::U32 => "usize".to_string(),
            Kind::I32 => "i64".into(),
            Kind::F32 => "f32".into(),
            Kind::Words => "[u32; 2]".into(),
            Kind::Sizes => "[usize; 3]".into(),
            Kind::Signed => "[i64; 3]".into(),
            Kind::List(_) => "&'a [usize]".into(),
            Kind::SignedList(_) => "&'a [i64]".into(),
            Kind::Struct(s) => {
                format!("crate::shaders::{s}{}", lifetime(&structs[s], structs))
            }
        };
        w.line(&format!("pub {}: {kind},", field.name));
    }
    w.line("}");
    let any = if own.is_empty() { "" } else { "<'_>" };
    w.line(&format!("impl {name}{any} {{"));
    w.line("fn write(&self, words: &mut crate::shaders::Words) {");
    let mut at = 0;
    let mut run = Vec::new();
    for field in fields {
        if field.offset / 4 != at {
            flush(w, &mut run);
            w.line(&format!("words.skip({});", field.offset / 4 - at));
        }
        at = field.offset / 4 + field.kind.words(structs);
        let name = format!("self.{}", field.name);
        if field.kind == Kind::U32 {
            run.push(name);
            continue;
        }
        flush(w, &mut run);
        match &field.kind {
            Kind::U32 => {}
            Kind::I32 => w.line(&format!("words.signed(&[{name}]);")),
            Kind::F32 => w.line(&format!("words.float({name});")),
            Kind::Words => w.line(&format!("words.raw(&{name});")),
            Kind::Sizes => w.line(&format!("words.sizes(&{name});")),
            Kind::Signed => w.line(&format!("words.signed(&{name});")),
            Kind::List(n) => w.line(&format!("words.list({name}, {n});")),
            Kind::SignedList(n) => w.line(&format!("words.signed_list({name}, {n});")),
            Kind::Struct(_) => w.line(&format!("{name}.write(words);")),
        }
    }
    flush(w, &mut run);
    w.line("}");
    w.line("}");
}

/// Sizes that follow each other are written together.
fn flush(w: &mut Writer, run: &mut Vec<String>) {
    if !run.is_empty() {
        w.line(&format!("words.sizes(&[{}]);", run.join(", ")));
        run.clear();
    }
}

/// One shader.
struct Entry<'a> {
    shader: &'a Shader,
    layout: &'a Layout,
    structs: &'a Structs,
}

impl Entry<'_> {
    fn write(&self, w: &mut Writer) -> Result<()> {
        let params = self.params()?;
        structure(w, "Params", params, self.structs);
        let payloads = self.payloads()?;
        for define in self.shader.common.iter().filter(|d| is_own(d)) {
            let payload = payloads.iter().find(|p| p.define == define.name);
            match payload {
                Some(payload) => payload.write(w, define),
                None => plain_enum(w, &own_type(define, None), &define.values),
            }
            self.workgroup(w, define, payload);
        }
        self.launch(w, params, &payloads)?;
        self.call(w, params, &payloads);
        Ok(())
    }

    /// The parameters that kernels give: not the number of the node, which is the last.
    fn params(&self) -> Result<&[Field]> {
        let all = &self.layout.params[..];
        match all.split_last() {
            Some((last, others)) if self.shader.reports => {
                let end = others.last();
                let end = end.map_or(0, |f| f.offset + 4 * f.kind.words(self.structs));
                match last.name == "node" && last.kind == Kind::U32 && last.offset == end {
                    true => Ok(others),
                    false => {
                        Err("where there is a `#fault`, `node: u32` ends the parameters".into())
                    }
                }
            }
            _ => Ok(all),
        }
    }

    /// Definitions on which buffers depend.
    fn payloads(&self) -> Result<Vec<Payload>> {
        let own = self.shader.common.iter().filter(|d| is_own(d));
        let payloads = own.map(|d| operands::payload(d, &self.shader.operands));
        Ok(payloads
            .collect::<Result<Vec<_>>>()?
            .into_iter()
            .flatten()
            .collect())
    }

    fn workgroup(&self, w: &mut Writer, define: &Define, payload: Option<&Payload>) {
        if self.layout.workgroup_by.as_deref() != Some(&define.name) {
            return;
        }
        let name = own_type(define, None);
        w.line(&format!("impl {name} {{"));
        w.line("/// Threads of a workgroup along each dimension.");
        w.line("pub const fn workgroup(self) -> [usize; 3] {");
        w.line("match self {");
        for (value, size) in define.values.iter().zip(&self.layout.workgroups) {
            let pattern = payload.map_or_else(|| variant(value), |p| p.pattern(value));
            w.line(&format!("{name}::{pattern} => {size:?},"));
        }
        w.line("}");
        w.line("}");
        w.line("}");
    }

    fn has_cases(&self) -> bool {
        !self.shader.cases_of.is_empty()
    }

    fn case_path(&self) -> String {
        match self.shader.cases_of == self.shader.path {
            true => "Case".into(),
            false => {
                let path = self.shader.cases_of.trim_end_matches(".wgsl");
                format!("crate::shaders::{}::Case", path.replace('/', "::"))
            }
        }
    }

    /// Definitions, buffers and parameters of one dispatch.
    fn launch(&self, w: &mut Writer, params: &[Field], payloads: &[Payload]) -> Result<()> {
        let mut fields: Vec<(String, String)> = Vec::new();
        if self.has_cases() {
            fields.push(("case".into(), self.case_path()));
        }
        let common = self.shader.common.iter().filter(|d| d.values.len() > 1);
        fields.extend(common.map(|d| (field(d), type_of(d, None))));
        for operand in self.given() {
            let kind = operands::type_of(operand);
            match &operand.presence {
                Presence::Always => fields.push((operand.name.clone(), kind.into())),
                Presence::Optional => {
                    fields.push((operand.name.clone(), format!("Option<{kind}>")));
                }
                Presence::Where { .. } => {}
            }
        }
        let own = lifetime(params, self.structs);
        fields.push(("params".into(), format!("Params{own}")));
        w.line(&format!("/// A dispatch of `{}`.", self.shader.path));
        w.line(&format!("pub(crate) struct Launch{own} {{"));
        for (i, (name, kind)) in fields.iter().enumerate() {
            if fields[..i].iter().any(|(other, _)| other == name) {
                return Err(format!("a definition and a buffer are both `{name}`"));
            }
            w.line(&format!("pub {name}: {kind},"));
        }
        w.line("}");
        debug_assert!(
            payloads
                .iter()
                .all(|p| fields.iter().any(|(n, _)| *n == p.field()))
        );
        Ok(())
    }

    /// Buffers that kernels give.
    fn given(&self) -> impl Iterator<Item = &Operand> {
        self.shader.operands.iter().filter(|o| o.name != FAULT)
    }

    /// What a launch becomes.
    fn call(&self, w: &mut Writer, params: &[Field], payloads: &[Payload]) {
        let any = match has_lists(params, self.structs) {
            true => "<'_>",
            false => "",
        };
        w.line(&format!(
            "impl From<Launch{any}> for crate::shaders::Call {{"
        ));
        w.line(&format!("fn from(launch: Launch{any}) -> Self {{"));
        self.number(w, payloads);
        w.line(&format!(
            "let mut call = Self::new(&crate::shaders::{}, number);",
            constant(&self.shader.path)
        ));
        let mut done: Vec<&str> = Vec::new();
        for operand in &self.shader.operands {
            let (name, give) = (&operand.name, operands::method(operand));
            match &operand.presence {
                _ if name == FAULT => w.line("call.fault();"),
                Presence::Always => w.line(&format!("call.{give}(launch.{name});")),
                Presence::Optional => {
                    w.line(&format!("if let Some({name}) = launch.{name} {{"));
                    w.line(&format!("call.{give}({name});"));
                    w.line("}");
                }
                Presence::Where { define, .. } if !done.contains(&define.as_str()) => {
                    done.push(define);
                    let payload = payloads.iter().find(|p| p.define == *define);
                    if let Some(payload) = payload {
                        payload.give(w);
                    }
                }
                Presence::Where { .. } => {}
            }
        }
        w.line("launch.params.write(&mut call.params);");
        w.line("call");
        w.line("}");
        w.line("}");
    }

    /// The number of the variant among all of the shader.
    fn number(&self, w: &mut Writer, payloads: &[Payload]) {
        let mut before = 0;
        let cases = self.shader.cases.iter().map(|case| {
            let number = self.number_in(case, before, payloads);
            before += self.shader.count(case);
            let bound = case.defines.iter().filter(|d| d.values.len() > 1);
            let bound = bound.map(field).collect::<Vec<_>>();
            let pattern = match bound.is_empty() {
                true => case.name.clone(),
                false => format!("{} {{ {} }}", case.name, bound.join(", ")),
            };
            (pattern, number)
        });
        let cases: Vec<_> = cases.collect();
        if !self.has_cases() {
            w.line(&format!("let number: u16 = {};", cases[0].1));
            return;
        }
        w.line("let number: u16 = match launch.case {");
        for (pattern, number) in cases {
            w.line(&format!("{}::{pattern} => {number},", self.case_path()));
        }
        w.line("};");
    }

    fn number_in(&self, case: &Case, before: usize, payloads: &[Payload]) -> String {
        let mut number = String::new();
        for define in self.shader.defines(case) {
            if define.values.len() < 2 {
                continue;
            }
            let name = field(&define);
            let operand = self.given().find(|o| o.flag() == define.name);
            let place = match operand {
                Some(operand) => format!("launch.{}.is_some()", operand.name),
                None if case.defines.contains(&define) => name.clone(),
                None => format!("launch.{name}"),
            };
            let value = match payloads.iter().any(|p| p.define == define.name) {
                true => format!("{place}.place()"),
                false if define.is_bool() => format!("u16::from({place})"),
                false => format!("{place} as u16"),
            };
            number = match number.is_empty() {
                true => value,
                false => format!("({number}) * {} + {value}", define.values.len()),
            };
        }
        match (number.is_empty(), before) {
            (true, _) => before.to_string(),
            (false, 0) => number,
            (false, _) => format!("{before} + {number}"),
        }
    }
}
