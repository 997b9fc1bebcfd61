//! The file that keeps what was measured of this machine's devices.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use kilim_core::{Calibration, Error, ErrorCode, Result};

/// Where the calibration is kept: the file that `KILIM_CALIBRATION` names, else
/// `kilim/calibration.json` in the user's cache folder. `None` where neither is known, and where
/// `KILIM_CALIBRATION` is empty.
pub fn file() -> Option<PathBuf> {
    let named = |name: &str| std::env::var_os(name);
    if let Some(file) = named("KILIM_CALIBRATION") {
        return (!file.is_empty()).then(|| file.into());
    }
    let given = |name: &str| named(name).filter(|f| !f.is_empty()).map(PathBuf::from);
    let folder = if cfg!(windows) {
        given("LOCALAPPDATA")
    } else if cfg!(target_os = "macos") {
        given("HOME").map(|home| home.join("Library/Caches"))
    } else {
        given("XDG_CACHE_HOME").or_else(|| given("HOME").map(|home| home.join(".cache")))
    };
    folder.map(|f| f.join("kilim").join("calibration.json"))
}

/// What is kept; nothing where there is no file.
///
/// # Errors
/// `Io` where the file cannot be read or is not a calibration.
pub fn load(file: &Path) -> Result<Calibration> {
    match std::fs::read_to_string(file) {
        Ok(text) => serde_json::from_str(&text).map_err(|e| wrong(file, &e)),
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(Calibration::default()),
        Err(e) => Err(wrong(file, &e)),
    }
}

/// Keeps `calibration`. The file is replaced as a whole.
///
/// # Errors
/// `Io` where it cannot be written.
pub fn save(file: &Path, calibration: &Calibration) -> Result<()> {
    let io = |e: std::io::Error| wrong(file, &e);
    let text = serde_json::to_string_pretty(calibration).map_err(|e| wrong(file, &e))?;
    if let Some(folder) = file.parent() {
        std::fs::create_dir_all(folder).map_err(io)?;
    }
    let new = file.with_extension(format!("{}.new", std::process::id()));
    std::fs::write(&new, text).map_err(io)?;
    std::fs::rename(&new, file).map_err(io)
}

fn wrong(file: &Path, error: &dyn std::fmt::Display) -> Error {
    let message = format!("the calibration `{}`: {error}", file.display());
    Error::new(ErrorCode::Io, message).with_hint("`kilim devices --calibrate` makes it anew")
}
