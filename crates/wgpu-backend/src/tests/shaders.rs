//! Every variant of every shader is valid WGSL with the workgroup size that is declared.

use crate::shaders::{ALL, Shader, Values, Variant};

fn combinations(set: &[Values]) -> Vec<Vec<(&'static str, &'static str)>> {
    set.iter().fold(vec![Vec::new()], |all, (name, values)| {
        all.iter()
            .flat_map(|done: &Vec<(&'static str, &'static str)>| {
                values.iter().map(move |v| {
                    let mut next = done.clone();
                    next.push((*name, *v));
                    next
                })
            })
            .collect()
    })
}

fn validate(shader: &Shader, defines: Vec<(&'static str, &'static str)>) {
    let variant = Variant {
        shader: shader.name,
        text: None,
        defines,
        read_only: vec![false; 16],
    };
    let label = variant.label();
    let source = variant.source().unwrap_or_else(|e| panic!("{label}: {e}"));
    let module = naga::front::wgsl::parse_str(&source)
        .unwrap_or_else(|e| panic!("{label}: {}", e.emit_to_string(&source)));
    naga::valid::Validator::new(
        naga::valid::ValidationFlags::all(),
        naga::valid::Capabilities::all(),
    )
    .validate(&module)
    .unwrap_or_else(|e| panic!("{label}: {}", e.emit_to_string(&source)));
    let main = module
        .entry_points
        .iter()
        .find(|e| e.name == "main")
        .unwrap_or_else(|| panic!("{label} has no main"));
    assert_eq!(main.workgroup_size, shader.workgroup, "{label}");
}

#[test]
fn every_variant_is_valid() {
    let mut count = 0;
    for shader in ALL {
        for set in shader.variants {
            for defines in combinations(set) {
                validate(shader, defines);
                count += 1;
            }
        }
    }
    assert!(count > 100);
}

#[test]
fn names_are_unique() {
    for (i, a) in ALL.iter().enumerate() {
        assert!(ALL[..i].iter().all(|b| a.name != b.name), "{}", a.name);
    }
}
