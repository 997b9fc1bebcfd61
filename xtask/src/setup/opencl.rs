//! OpenCL under the emulator: Debian's PoCL, which runs kernels on the CPU, behind a layer that says
//! what the ARM Compute Library wants to hear.

use super::arm::{self, Acl, Emulation, LINKER, TRIPLE};
use crate::sh;
use anyhow::{Context, Result};
use std::fs;
use std::path::Path;

/// PoCL, its compiler, and what these are linked to.
const PACKAGES: [&str; 24] = [
    "pocl-opencl-icd",
    "ocl-icd-libopencl1",
    "libpocl2t64",
    "libpocl2-common",
    "libllvm18",
    "libclang-cpp18",
    "libclang-common-18-dev",
    "libllvmspirvlib18.1",
    "libhwloc15",
    "libudev1",
    "libcap2",
    "zlib1g",
    "libzstd1",
    "libtinfo6",
    "libedit2",
    "libffi8",
    "libxml2",
    "liblzma5",
    "libz3-4",
    "libbsd0",
    "libmd0",
    "libstdc++6",
    "libgcc-s1",
    "libc6",
];

/// Running programs with this shim and OpenCL. Compiled kernels are kept between runs.
pub fn emulation(acl: &Acl, shim: &Path) -> Result<Emulation> {
    let dir = arm::folder().join("opencl");
    let root = arm::unpack("opencl", &arm::sources(&dir, "trixie")?, &PACKAGES)?;
    let (layer, linker, cache) = (dir.join("lib"), dir.join("bin"), dir.join("cache"));
    for folder in [&layer, &linker, &cache] {
        fs::create_dir_all(folder)?;
    }
    let libraries = root.join("usr/lib").join(TRIPLE);
    let sources = sh::root().join("crates/native-arm/tests/opencl");
    let mut compiler = sh::cmd(LINKER);
    compiler
        .args(["-Wall", "-Wextra", "-shared", "-fPIC", "-O1"])
        .arg(format!("-DHERE={:?}", sources.display().to_string()))
        .arg("-I")
        .arg(&acl.headers)
        .arg(sources.join("layer.c"))
        .arg("-o")
        .arg(layer.join("libOpenCL.so"))
        .arg("-L")
        .arg(&libraries)
        .args(["-Wl,--no-as-needed", "-l:libOpenCL.so.1"])
        .arg("-Wl,--allow-shlib-undefined");
    sh::run_quiet("build the layer for OpenCL", &mut compiler)?;
    write_linker(&linker.join("ld"))?;
    let path = std::env::var_os("PATH").context("PATH is not set")?;
    let first = |folder: &Path, rest: &[&Path]| {
        let all = std::iter::once(folder).chain(rest.iter().copied());
        std::env::join_paths(all)
    };
    let plain = acl.emulation(shim);
    let mut variables = plain.variables;
    variables.retain(|(name, _)| *name != "LD_LIBRARY_PATH");
    let old: Vec<_> = std::env::split_paths(&path).collect();
    let old: Vec<&Path> = old.iter().map(|p| p.as_path()).collect();
    variables.extend([
        (
            "LD_LIBRARY_PATH",
            first(&layer, &[&libraries, &acl.libraries])?,
        ),
        ("OCL_ICD_VENDORS", root.join("etc/OpenCL/vendors").into()),
        ("POCL_CACHE_DIR", cache.into()),
        ("PATH", first(&linker, &old)?),
        ("KILIM_OPENCL", "1".into()),
    ]);
    Ok(Emulation {
        // With the vectors of `max`, PoCL compiles kernels for so long that they never run.
        cpu: "cortex-a72",
        root,
        variables,
        minutes: 40,
    })
}

/// PoCL links kernels by running `ld`, which under the emulator is the host's.
fn write_linker(path: &Path) -> Result<()> {
    let asked = sh::capture(sh::cmd(LINKER).arg("-print-libgcc-file-name"));
    let libgcc = asked.context("the cross compiler does not say where its libraries are")?;
    let folder = Path::new(&libgcc).parent().unwrap_or(Path::new("/"));
    let text = format!(
        "#!/bin/sh\nexec aarch64-linux-gnu-ld -L{} -L{}/lib \"$@\"\n",
        folder.display(),
        arm::C_LIBRARY
    );
    fs::write(path, text)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(path, fs::Permissions::from_mode(0o755))?;
    }
    Ok(())
}
