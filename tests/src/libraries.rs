//! Libraries of backends and importers, compiled for a test.

use std::path::Path;
use std::process::Command;

use kilim_test_support::material::root;

/// How the library of a backend is called here.
pub fn file_name(id: &str) -> String {
    format!(
        "{}backend_{id}{}",
        std::env::consts::DLL_PREFIX,
        std::env::consts::DLL_SUFFIX
    )
}

/// How the library of an importer is called here.
pub fn importer_file_name(id: &str) -> String {
    format!(
        "{}importer_{id}{}",
        std::env::consts::DLL_PREFIX,
        std::env::consts::DLL_SUFFIX
    )
}

/// Compiles a library of a backend, of one C file below the root into `folder`, with the header that is shipped.
///
/// # Panics
/// Where it does not compile.
pub fn compile(source: &str, folder: &Path, id: &str, defines: &[String]) {
    compile_to(source, &folder.join(file_name(id)), defines);
}

/// Compiles a library of one C file below the root, with the headers that are shipped.
///
/// # Panics
/// Where it does not compile.
pub fn compile_to(source: &str, library: &Path, defines: &[String]) {
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_string());
    let mut command = Command::new(compiler);
    command.args([
        "-std=c11", "-Wall", "-Wextra", "-Werror", "-O1", "-shared", "-fPIC",
    ]);
    command.args(defines.iter().map(|d| format!("-D{d}")));
    command.arg("-I").arg(root().join("include"));
    command.arg(root().join(source));
    let status = command.arg("-o").arg(library).status();
    assert!(
        status.is_ok_and(|s| s.success()),
        "{source} does not compile"
    );
}
