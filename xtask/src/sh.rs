//! Running other programs, and the few file helpers that every job shares.

use anyhow::{Context, Result, bail};
use std::cell::Cell;
use std::ffi::OsStr;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Instant;

thread_local! {
    static LABEL: Cell<&'static str> = const { Cell::new("") };
}

/// Makes each line that this thread says from now on begin so.
pub fn label(label: &'static str) {
    LABEL.set(label);
}

/// Prints a line, with the thread's label.
pub fn say(line: &str) {
    println!("{}{line}", LABEL.get());
}

/// The repository's root folder.
pub fn root() -> PathBuf {
    let here = std::env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    here.parent().map(Path::to_path_buf).unwrap_or(here)
}

/// Where everything that is built or downloaded goes, `target/` unless `CARGO_TARGET_DIR` says otherwise.
pub fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| root().join("target"), |dir| root().join(dir))
}

/// Where cargo keeps the packages that it has downloaded.
pub fn packages() -> Option<PathBuf> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(std::env::home_dir()?.join(".cargo")))?;
    Some(home.join("registry").join("src"))
}

/// The material beside the repository that some checks use when it is there.
pub fn shared() -> Option<PathBuf> {
    let dir =
        std::env::var_os("KILIM_SHARED").map_or_else(|| root().join("../shared"), PathBuf::from);
    dir.canonicalize().ok().filter(|dir| dir.is_dir())
}

/// A command that runs in the repository's root.
pub fn cmd(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.current_dir(root());
    command
}

/// The cargo that runs this program.
pub fn cargo() -> Command {
    cmd(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// npm, quiet about anything but errors.
pub fn npm(dir: &Path) -> Command {
    let mut command = cmd(if cfg!(windows) { "npm.cmd" } else { "npm" });
    command
        .current_dir(dir)
        .env("npm_config_loglevel", "error")
        .env("npm_config_fund", "false")
        .env("npm_config_audit", "false");
    command
}

fn shown(command: &Command) -> String {
    let mut text = command.get_program().to_string_lossy().into_owned();
    for arg in command.get_args() {
        text.push(' ');
        text.push_str(&arg.to_string_lossy());
    }
    text
}

/// Runs with the terminal's own output; a non-zero exit is an error.
pub fn run(command: &mut Command) -> Result<()> {
    let status = command
        .status()
        .with_context(|| format!("cannot run `{}`", shown(command)))?;
    if !status.success() {
        bail!("`{}` failed: {status}", shown(command));
    }
    Ok(())
}

/// Runs silently under a progress line; the output is shown only if it fails.
pub fn run_quiet(label: &str, command: &mut Command) -> Result<()> {
    say(&format!("  {label} …"));
    let start = Instant::now();
    let output = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot run `{}`", shown(command)))?;
    if output.status.success() {
        say(&format!(
            "  {label}: {:.0} s",
            start.elapsed().as_secs_f64()
        ));
        return Ok(());
    }
    say(&format!("  {label}: failed"));
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().collect();
    bail!(
        "`{}` failed: {}\n{}",
        shown(command),
        output.status,
        lines[lines.len().saturating_sub(40)..].join("\n")
    );
}

/// The standard output of a command that succeeds, trimmed; `None` if it cannot run or fails.
pub fn capture(command: &mut Command) -> Option<String> {
    let output = command
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    output
        .status
        .success()
        .then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// The first of `names` that is a file, looked up in `PATH` when it is a bare name.
pub fn find(names: &[&str]) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    names.iter().find_map(|name| {
        if Path::new(name).components().count() > 1 {
            return Some(PathBuf::from(name)).filter(|file| file.is_file());
        }
        std::env::split_paths(&path)
            .flat_map(|dir| [dir.join(name), dir.join(format!("{name}.exe"))])
            .find(|file| file.is_file())
    })
}

/// All files under `paths` in a stable order, without the folders that hold what is installed or built.
pub fn files(paths: &[PathBuf]) -> Vec<PathBuf> {
    fn walk(path: &Path, out: &mut Vec<PathBuf>) {
        if path.is_dir() {
            let skipped = ["node_modules", "dist", "test-results"]
                .iter()
                .any(|name| path.ends_with(name));
            if let (false, Ok(entries)) = (skipped, fs::read_dir(path)) {
                entries.flatten().for_each(|entry| walk(&entry.path(), out));
            }
        } else if path.is_file() {
            out.push(path.to_path_buf());
        }
    }
    let mut out = Vec::new();
    paths.iter().for_each(|path| walk(path, &mut out));
    out.sort();
    out
}

/// A fingerprint of a recipe and the content of its inputs, to skip work that is up to date.
pub fn fingerprint(recipe: &str, inputs: &[PathBuf]) -> Result<String> {
    let mut hasher = DefaultHasher::new();
    recipe.hash(&mut hasher);
    for path in inputs {
        path.hash(&mut hasher);
        fs::read(path)
            .with_context(|| format!("cannot read {}", path.display()))?
            .hash(&mut hasher);
    }
    Ok(format!("{:016x}", hasher.finish()))
}

/// Whether `stamp` says that work with this `fingerprint` was done, and every output is as it was left.
pub fn is_up_to_date(stamp: &Path, fingerprint: &str, outputs: &[PathBuf]) -> bool {
    let there = outputs.iter().all(|path| path.exists());
    let same = |text: String| state(fingerprint, outputs).is_ok_and(|now| now == text);
    there && fs::read_to_string(stamp).is_ok_and(same)
}

/// The fingerprint of work and what it left.
fn state(fingerprint: &str, outputs: &[PathBuf]) -> Result<String> {
    let files = outputs.iter().filter(|path| path.is_file());
    self::fingerprint(fingerprint, &files.cloned().collect::<Vec<_>>())
}

/// Does `work` unless [`is_up_to_date`], and says so.
pub fn up_to_date(
    stamp: &Path,
    fingerprint: &str,
    outputs: &[PathBuf],
    work: impl FnOnce() -> Result<()>,
) -> Result<bool> {
    if is_up_to_date(stamp, fingerprint, outputs) {
        return Ok(true);
    }
    work()?;
    if let Some(dir) = stamp.parent() {
        fs::create_dir_all(dir)?;
    }
    fs::write(stamp, state(fingerprint, outputs)?)?;
    Ok(false)
}

/// The standard output of a command; its error output if it fails.
pub fn capture_or_error(command: &mut Command) -> Result<String> {
    let output = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot run `{}`", shown(command)))?;
    if !output.status.success() {
        bail!(
            "`{}` failed: {}\n{}",
            shown(command),
            output.status,
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Runs a command, passes every line of both its outputs on and shows it to `each`; returns whether it succeeded.
pub fn tee(command: &mut Command, mut each: impl FnMut(&str)) -> Result<bool> {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot run `{}`", shown(command)))?;
    let (sender, lines) = mpsc::channel();
    let forward = |pipe: Box<dyn Read + Send>, sender: mpsc::Sender<String>| {
        std::thread::spawn(move || {
            let mut reader = BufReader::new(pipe);
            let mut line = Vec::new();
            while reader
                .read_until(b'\n', &mut line)
                .is_ok_and(|count| count > 0)
            {
                let text = String::from_utf8_lossy(&line).trim_end().to_owned();
                line.clear();
                if sender.send(text).is_err() {
                    break;
                }
            }
        })
    };
    let stdout = child.stdout.take().context("no output pipe")?;
    let stderr = child.stderr.take().context("no error pipe")?;
    let readers = [
        forward(Box::new(stdout), sender.clone()),
        forward(Box::new(stderr), sender),
    ];
    for line in lines {
        say(&line);
        each(&line);
    }
    readers.into_iter().for_each(|reader| drop(reader.join()));
    Ok(child.wait()?.success())
}
