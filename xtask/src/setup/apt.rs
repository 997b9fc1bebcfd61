//! Debian packages: installed when the system is Debian-like and this is root; otherwise the user is told what to run.

use crate::sh;
use anyhow::{Result, bail};
use std::sync::{Mutex, PoisonError};

/// Installs `packages`; `elsewhere` tells users of other systems what to do.
pub fn install(packages: &[&str], elsewhere: &str) -> Result<()> {
    let list = packages.join(" ");
    if sh::find(&["apt-get"]).is_none() {
        bail!("{elsewhere}");
    }
    if !is_root() {
        bail!("missing packages; run: sudo apt-get update && sudo apt-get install {list}");
    }
    // Whether the lists are new. Only one apt can run at a time.
    static UPDATED: Mutex<bool> = Mutex::new(false);
    let mut updated = UPDATED.lock().unwrap_or_else(PoisonError::into_inner);
    if !*updated {
        sh::run_quiet("apt-get update", apt().args(["-qq", "update"]))?;
        *updated = true;
    }
    sh::run_quiet(
        &format!("apt-get install {list}"),
        apt().args(["-qq", "-y", "install"]).args(packages),
    )
}

/// Whether packages can be installed: a system with apt, and the right to.
pub fn is_root() -> bool {
    let id = || sh::capture(sh::cmd("id").arg("-u"));
    sh::find(&["apt-get"]).is_some() && id().as_deref() == Some("0")
}

fn apt() -> std::process::Command {
    let mut command = sh::cmd("apt-get");
    command.env("DEBIAN_FRONTEND", "noninteractive");
    command
}
