//! Packs the exported ONNX suite into one file, so that the tests in the browser carry it along. Without
//! `KILIM_CONFORMANCE` the file is empty.

use std::io::Write;
use std::path::Path;
use std::{env, fs, io};

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-env-changed=KILIM_CONFORMANCE");
    println!("cargo::rerun-if-changed=build.rs");
    let out = env::var_os("OUT_DIR").unwrap_or_default();
    let file = fs::File::create(Path::new(&out).join("suite.bin"))?;
    let mut suite = io::BufWriter::new(file);
    let browser = env::var("CARGO_CFG_TARGET_ARCH").is_ok_and(|a| a == "wasm32");
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
