//! Makes typed entries of the shaders in `shaders/`, with their texts.

#[path = "../src/shaders/preprocess.rs"]
mod preprocess;

mod catalog;
mod described;
mod emit;
mod head;
mod layout;
mod operands;
mod texts;
mod writer;

use std::error::Error;
use std::path::Path;
use std::{env, fs};

use catalog::Catalog;
use layout::Structs;
use writer::Writer;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("../../shaders");
    println!("cargo::rerun-if-changed={}", folder.display());
    println!("cargo::rerun-if-changed=build");
    println!("cargo::rerun-if-changed=src/shaders/preprocess.rs");
    let catalog = Catalog::read(&folder)?;
    let shaders = catalog.shaders()?;
    let mut entries = Writer::default();
    texts::statics(&mut entries, &catalog, &shaders)?;
    let mut structs = Structs::new();
    let mut known = Vec::with_capacity(shaders.len());
    for shader in shaders {
        let layout = layout::of(&catalog, &shader, &mut structs);
        let layout = layout.map_err(|e| format!("{}: {e}", shader.path))?;
        known.push((shader, layout));
    }
    let out = env::var("OUT_DIR")?;
    let out = Path::new(&out);
    emit::entries(&mut entries, &catalog, &known, &structs)?;
    fs::write(out.join("entries.rs"), entries.finish())?;
    fs::write(out.join("described.rs"), described::table(&known, &structs))?;
    Ok(())
}
