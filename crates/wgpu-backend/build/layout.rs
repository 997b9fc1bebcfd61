//! What naga knows of a shader: how its parameters lie in the uniform buffer, and its workgroup.

use std::collections::BTreeMap;

use naga::{
    AddressSpace, ArraySize, Expression, Handle, Literal, Module, ScalarKind, Type, TypeInner,
    VectorSize,
};

use crate::catalog::{Catalog, Shader};
use crate::head::{Case, Result};

/// A field of a structure.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    pub name: String,
    /// In bytes, from the beginning of the structure.
    pub offset: u32,
    pub kind: Kind,
}

/// The types that parameters have.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    U32,
    I32,
    F32,
    /// `vec2<u32>`.
    Words,
    /// `vec3<u32>` and `vec3<i32>`.
    Sizes,
    Signed,
    /// `array<vec4<u32>, n>` and `array<vec4<i32>, n>`: up to as many numbers, zeros behind them.
    List(u32),
    SignedList(u32),
    Struct(String),
}

impl Kind {
    /// Words in the uniform buffer; of a structure, those of its fields.
    pub fn words(&self, structs: &Structs) -> u32 {
        match self {
            Kind::U32 | Kind::I32 | Kind::F32 => 1,
            Kind::Words => 2,
            Kind::Sizes | Kind::Signed => 3,
            Kind::List(n) | Kind::SignedList(n) => *n,
            Kind::Struct(name) => structs[name]
                .last()
                .map_or(0, |f| f.offset / 4 + f.kind.words(structs)),
        }
    }
}

/// The fields of the structures that parameters are made of, by name.
pub type Structs = BTreeMap<String, Vec<Field>>;

/// What is known of a shader beside its declarations.
pub struct Layout {
    pub params: Vec<Field>,
    /// For each value of the definition on which the workgroup depends; without one a single size.
    pub workgroups: Vec<[u32; 3]>,
    pub workgroup_by: Option<String>,
    /// What `shared/index.wgsl` declares as the threads of workgroups that `linear_id` counts in.
    pub linear: Option<u32>,
}

/// Parses a variant of each case. Structures go to `structs`.
pub fn of(catalog: &Catalog, shader: &Shader, structs: &mut Structs) -> Result<Layout> {
    let (mut params, mut linear) = (None, None);
    let mut sizes = Vec::new();
    for case in &shader.cases {
        let module = parse(catalog, shader, case, None)?;
        sizes.push(module.entry_points[0].workgroup_size);
        linear = linear_size(&module);
        let own = parameters(&module, structs)?;
        if params.get_or_insert_with(|| own.clone()) != &own {
            return Err("its cases have different parameters".into());
        }
    }
    if sizes.iter().any(|s| *s != sizes[0]) {
        return Err("its cases have different workgroups".into());
    }
    let file = &catalog.files[shader.id].head.body;
    if let Some(n) = linear
        && file.contains("linear_id(")
        && sizes[0] != [n, 1, 1]
    {
        return Err(format!("`linear_id` counts in workgroups of {n}"));
    }
    let mut layout = Layout {
        params: params.unwrap_or_default(),
        workgroups: vec![sizes[0]],
        workgroup_by: None,
        linear,
    };
    if !file.contains("@workgroup_size(") || literal_workgroup(file) {
        return Ok(layout);
    }
    // The size is computed from a definition: which one?
    for define in shader.common.iter().filter(|d| d.named.is_none()) {
        let mut each = Vec::new();
        for value in &define.values {
            let other = Some((define.name.as_str(), value.as_str()));
            let module = parse(catalog, shader, &shader.cases[0], other)?;
            each.push(module.entry_points[0].workgroup_size);
        }
        if each.iter().any(|s| *s != each[0]) {
            layout.workgroup_by = Some(define.name.clone());
            layout.workgroups = each;
        }
    }
    Ok(layout)
}

fn literal_workgroup(text: &str) -> bool {
    let sizes = text.split("@workgroup_size(").skip(1);
    sizes
        .filter_map(|rest| rest.split(')').next())
        .all(|size| !size.contains(|c: char| c.is_alphabetic()))
}

/// The constant `LINEAR`.
fn linear_size(module: &Module) -> Option<u32> {
    let named = |c: &&naga::Constant| c.name.as_deref() == Some("LINEAR");
    let constant = module.constants.iter().map(|(_, c)| c).find(named)?;
    match module.global_expressions[constant.init] {
        Expression::Literal(Literal::U32(n)) => Some(n),
        _ => None,
    }
}

/// The module of a case where `other` has another value than its first.
fn parse(
    catalog: &Catalog,
    shader: &Shader,
    case: &Case,
    other: Option<(&str, &str)>,
) -> Result<Module> {
    let mut chosen = shader.first(case);
    if let Some((name, value)) = other {
        chosen.insert(name.to_string(), value.to_string());
    }
    let text = catalog.expand(shader, &chosen)?;
    let module = naga::front::wgsl::parse_str(&text).map_err(|e| e.emit_to_string(&text))?;
    match module.entry_points.len() {
        1 => Ok(module),
        n => Err(format!("{n} entry points")),
    }
}

/// The fields of the uniform at binding 0.
fn parameters(module: &Module, structs: &mut Structs) -> Result<Vec<Field>> {
    let uniforms = module.global_variables.iter().map(|(_, v)| v);
    let mut uniforms = uniforms.filter(|v| v.space == AddressSpace::Uniform);
    let uniform = uniforms.next().ok_or("there is no uniform")?;
    let binding = uniform.binding.as_ref().map(|b| (b.group, b.binding));
    if binding != Some((0, 0)) || uniforms.next().is_some() {
        return Err("there is another uniform than that at binding 0".into());
    }
    fields(module, uniform.ty, structs)
}

fn fields(module: &Module, ty: Handle<Type>, structs: &mut Structs) -> Result<Vec<Field>> {
    let TypeInner::Struct { members, .. } = &module.types[ty].inner else {
        return Err("the uniform is not a structure".into());
    };
    let field = |member: &naga::StructMember| -> Result<Field> {
        let name = member.name.clone().unwrap_or_default();
        let kind = kind(module, member.ty, structs).map_err(|e| format!("`{name}`: {e}"))?;
        Ok(Field {
            name,
            offset: member.offset,
            kind,
        })
    };
    members.iter().map(field).collect()
}

fn kind(module: &Module, ty: Handle<Type>, structs: &mut Structs) -> Result<Kind> {
    let unknown = || Err("parameters of its type are not known here".to_string());
    let declared = &module.types[ty];
    match &declared.inner {
        TypeInner::Scalar(s) => match s.kind {
            ScalarKind::Uint => Ok(Kind::U32),
            ScalarKind::Sint => Ok(Kind::I32),
            ScalarKind::Float => Ok(Kind::F32),
            _ => unknown(),
        },
        TypeInner::Vector { size, scalar } => match (size, scalar.kind) {
            (VectorSize::Bi, ScalarKind::Uint) => Ok(Kind::Words),
            (VectorSize::Tri, ScalarKind::Uint) => Ok(Kind::Sizes),
            (VectorSize::Tri, ScalarKind::Sint) => Ok(Kind::Signed),
            _ => unknown(),
        },
        TypeInner::Array { base, size, .. } => {
            let (
                TypeInner::Vector {
                    size: VectorSize::Quad,
                    scalar,
                },
                ArraySize::Constant(n),
            ) = (&module.types[*base].inner, size)
            else {
                return unknown();
            };
            match scalar.kind {
                ScalarKind::Uint => Ok(Kind::List(4 * n.get())),
                ScalarKind::Sint => Ok(Kind::SignedList(4 * n.get())),
                _ => unknown(),
            }
        }
        TypeInner::Struct { .. } => {
            let name = declared.name.clone().unwrap_or_default();
            let own = fields(module, ty, structs)?;
            match structs.get(&name) {
                Some(other) if *other != own => Err(format!("there are two structures `{name}`")),
                _ => {
                    structs.insert(name.clone(), own);
                    Ok(Kind::Struct(name))
                }
            }
        }
        _ => unknown(),
    }
}
