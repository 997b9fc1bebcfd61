//! Every variant of every shader is valid WGSL, and what the build script declares of it.

use naga::valid::{Capabilities, GlobalUse, ModuleInfo, ValidationFlags, Validator};
use naga::{AddressSpace, Module, TypeInner};

use crate::shaders::{File, Variant};

/// What the build script knows of a shader.
pub struct Described {
    pub file: &'static File,
    pub path: &'static str,
    /// Variants of each case.
    pub cases: &'static [u16],
    /// The definition on which the workgroup depends.
    pub workgroup_by: Option<&'static str>,
    /// The threads of a workgroup, for each value of that definition.
    pub workgroups: &'static [[u32; 3]],
    /// Name and whether it is written, in the order of the bindings.
    pub operands: &'static [(&'static str, bool)],
    /// Name and offset in bytes.
    pub params: &'static [(&'static str, u32)],
}

include!(concat!(env!("OUT_DIR"), "/described.rs"));

impl Described {
    /// The variants of each case.
    pub fn cases(&self) -> impl Iterator<Item = Vec<Variant>> {
        let (file, mut end) = (self.file, 0);
        self.cases.iter().map(move |count| {
            let start = end;
            end += count;
            (start..end)
                .map(|number| Variant { file, number })
                .collect()
        })
    }

    /// All variants.
    fn variants(&self) -> impl Iterator<Item = Variant> {
        self.cases().flatten()
    }
}

/// A variant where whatever can be is bound for reading only.
pub fn parse(shader: &Described, variant: Variant) -> (Module, ModuleInfo) {
    let label = format!("{} {:?}", shader.path, variant.choices());
    let source = variant
        .source(&[true; 16])
        .unwrap_or_else(|e| panic!("{label}: {e}"));
    let module = naga::front::wgsl::parse_str(&source)
        .unwrap_or_else(|e| panic!("{label}: {}", e.emit_to_string(&source)));
    let info = Validator::new(ValidationFlags::all(), Capabilities::all())
        .validate(&module)
        .unwrap_or_else(|e| panic!("{label}: {}", e.emit_to_string(&source)));
    (module, info)
}

/// Name and offset of everything in a structure.
fn fields(
    module: &Module,
    ty: naga::Handle<naga::Type>,
    at: &str,
    offset: u32,
) -> Vec<(String, u32)> {
    let TypeInner::Struct { members, .. } = &module.types[ty].inner else {
        return vec![(at.trim_end_matches('.').to_string(), offset)];
    };
    let field = |m: &naga::StructMember| {
        let name = format!("{at}{}.", m.name.as_deref().unwrap_or_default());
        fields(module, m.ty, &name, offset + m.offset)
    };
    members.iter().flat_map(field).collect()
}

/// The buffers that a variant declares, in the order of their bindings, and how it uses each.
fn buffers(module: &Module, info: &ModuleInfo) -> Vec<(String, GlobalUse)> {
    let entry = info.get_entry_point(0);
    let mut found: Vec<_> = module
        .global_variables
        .iter()
        .filter(|(_, v)| matches!(v.space, AddressSpace::Storage { .. }))
        .map(|(handle, v)| {
            let binding = v.binding.as_ref().map_or(0, |b| b.binding);
            (binding, v.name.clone().unwrap_or_default(), entry[handle])
        })
        .collect();
    found.sort_by_key(|(binding, ..)| *binding);
    for (i, (binding, name, _)) in found.iter().enumerate() {
        assert_eq!(*binding, i as u32 + 1, "the binding of `{name}`");
    }
    found
        .into_iter()
        .map(|(_, name, used)| (name, used))
        .collect()
}

#[test]
fn every_variant_is_valid_and_as_declared() {
    let mut count = 0;
    for shader in ALL {
        let mut used = vec![GlobalUse::empty(); shader.operands.len()];
        for variant in shader.variants() {
            let (module, info) = parse(shader, variant);
            let choices = variant.choices().unwrap();
            let label = format!("{} {choices:?}", shader.path);
            let place = shader.workgroup_by.map_or(0, |by| {
                let size = |w: &[u32; 3]| *w == module.entry_points[0].workgroup_size;
                assert!(choices.iter().any(|(name, _)| *name == by), "{label}");
                shader.workgroups.iter().position(size).expect(&label)
            });
            let main = &module.entry_points[0];
            assert_eq!(main.workgroup_size, shader.workgroups[place], "{label}");
            let mut globals = module.global_variables.iter().map(|(_, v)| v);
            let uniform = globals.find(|v| v.space == AddressSpace::Uniform);
            let params = fields(&module, uniform.expect(&label).ty, "", 0);
            let known = shader.params.iter().map(|(n, o)| (n.to_string(), *o));
            assert_eq!(params, known.collect::<Vec<_>>(), "{label}");
            let mut declared = shader.operands.iter().enumerate();
            for (name, usage) in buffers(&module, &info) {
                let (i, (_, written)) = declared
                    .find(|(_, (n, _))| *n == name)
                    .unwrap_or_else(|| panic!("{label}: the order of `{name}`"));
                used[i] |= usage;
                let writes = usage.contains(GlobalUse::WRITE);
                assert!(*written || !writes, "{label}: `{name}` is written");
            }
            count += 1;
        }
        for ((name, written), used) in shader.operands.iter().zip(used) {
            let wanted = match written {
                true => GlobalUse::WRITE,
                false => GlobalUse::READ,
            };
            assert!(used.contains(wanted), "{}: `{name}`", shader.path);
        }
    }
    println!("{count} variants");
    assert!(count > 2000);
}

/// What is counted is what is there.
#[test]
fn variants_are_counted_to_the_last() {
    for shader in ALL {
        let (file, number) = (shader.file, shader.cases.iter().sum());
        assert!(
            Variant { file, number }.choices().is_err(),
            "{}",
            shader.path
        );
        let all: Vec<_> = shader.variants().map(|v| v.choices().unwrap()).collect();
        for (i, choices) in all.iter().enumerate() {
            assert!(!all[..i].contains(choices), "{} {choices:?}", shader.path);
        }
    }
}

#[test]
fn shaders_of_pages_are_valid() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../shaders/page");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let source = std::fs::read_to_string(&path).unwrap();
        let label = path.display();
        let module = naga::front::wgsl::parse_str(&source)
            .unwrap_or_else(|e| panic!("{label}: {}", e.emit_to_string(&source)));
        Validator::new(ValidationFlags::all(), Capabilities::empty())
            .validate(&module)
            .unwrap_or_else(|e| panic!("{label}: {}", e.emit_to_string(&source)));
        count += 1;
    }
    assert!(count > 0);
}
