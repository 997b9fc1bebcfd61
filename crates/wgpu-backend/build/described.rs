//! What the tests hold variants to.

use crate::catalog::Shader;
use crate::layout::{Field, Kind, Layout, Structs};
use crate::writer::{Writer, constant};

/// A table of every shader: what was declared, and what was found in one variant of each case.
pub fn table(shaders: &[(Shader, Layout)], structs: &Structs) -> String {
    let mut w = Writer::default();
    w.line("pub const ALL: &[Described] = &[");
    for (shader, layout) in shaders {
        let cases: Vec<usize> = shader.cases.iter().map(|c| shader.count(c)).collect();
        let operands = shader.operands.iter().map(|o| (&o.name, o.written));
        let mut params = Vec::new();
        flatten(&layout.params, structs, "", 0, &mut params);
        w.line("Described {");
        w.line(&format!(
            "file: &crate::shaders::{},",
            constant(&shader.path)
        ));
        w.line(&format!("path: {:?},", shader.path));
        w.line(&format!("cases: &{cases:?},"));
        w.line(&format!("workgroup_by: {:?},", layout.workgroup_by));
        w.line(&format!("workgroups: &{:?},", layout.workgroups));
        w.line(&format!("operands: &{:?},", operands.collect::<Vec<_>>()));
        w.line(&format!("params: &{params:?},"));
        w.line("},");
    }
    w.line("];");
    w.finish()
}

fn flatten(
    fields: &[Field],
    structs: &Structs,
    at: &str,
    offset: u32,
    all: &mut Vec<(String, u32)>,
) {
    for field in fields {
        let (name, offset) = (format!("{at}{}", field.name), offset + field.offset);
        match &field.kind {
            Kind::Struct(s) => flatten(&structs[s], structs, &format!("{name}."), offset, all),
            _ => all.push((name, offset)),
        }
    }
}
