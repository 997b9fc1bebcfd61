//! Packs the exported ONNX suite into one file, and the cases of
//! `references` into another, so that the tests in the browser carry them along. Without
//! `KILIM_CONFORMANCE` the first is empty.

use std::io::Write;
use std::path::Path;
use std::{env, fs, io};

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-env-changed=KILIM_CONFORMANCE");
    println!("cargo::rerun-if-changed=build.rs");
    let out = env::var_os("OUT_DIR").unwrap_or_default();
    let archive = |name: &str| fs::File::create(Path::new(&out).join(name)).map(io::BufWriter::new);
    let browser = env::var("CARGO_CFG_TARGET_ARCH").is_ok_and(|a| a == "wasm32");
    let mut references = archive("references.bin")?;
    if browser {
        println!("cargo::rerun-if-changed=references");
        let root = Path::new("references");
        pack(&mut references, root, root)?;
    }
    let mut suite = archive("suite.bin")?;
    if let Some(root) = env::var_os("KILIM_CONFORMANCE")
        && browser
    {
        let root = Path::new(&root);
        println!(
            "cargo::rerun-if-changed={}",
            root.join("index.json").display()
        );
        pack(&mut suite, root, root)?;
    }
    references.flush()?;
    suite.flush()
}

fn pack(archive: &mut impl Write, root: &Path, folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            pack(archive, root, &path)?;
        } else {
            put(archive, root, &path)?;
        }
    }
    Ok(())
}

/// Name and contents, each after its length as a little-endian `u32`.
fn put(archive: &mut impl Write, root: &Path, file: &Path) -> io::Result<()> {
    let name = file.strip_prefix(root).unwrap_or(file).to_string_lossy();
    let bytes = fs::read(file)?;
    for part in [name.as_bytes(), &bytes] {
        archive.write_all(&(part.len() as u32).to_le_bytes())?;
        archive.write_all(part)?;
    }
    Ok(())
}
