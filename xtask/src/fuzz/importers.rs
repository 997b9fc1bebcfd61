//! Importers under libFuzzer, guided by what of their code inputs reach. `tools/fuzz-importers/` is the program.

use crate::sh;
use anyhow::{Context, Result, bail, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

#[derive(clap::Args)]
pub struct Options {
    /// One format of those that --importers reads; all in turn where none is named
    #[arg(long, requires = "importers")]
    format: Option<String>,
    /// Runs of each format at most, for --importers
    #[arg(long, requires = "importers")]
    runs: Option<u64>,
    /// Seconds for each format of --importers, 60 where neither they nor runs are given
    #[arg(long, requires = "importers")]
    seconds: Option<u64>,
    /// Have the graphs of --importers go through the passes, too, which takes several times as long
    #[arg(long, requires = "importers")]
    passes: bool,
    /// Put inputs of --importers that led further, and those that broke an importer, into the repository
    #[arg(long, requires = "importers")]
    keep: bool,
}

/// Makes stable Rust count the edges that a run takes, as libFuzzer reads them. The program is not the machine's own target then, so that
/// build scripts and derives, which have no libFuzzer, are without.
const COVERAGE: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=3 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table";

/// Bytes of an input at most.
const BYTES: usize = 16 << 10;

/// Seconds that one input may take, and megabytes of the whole process: beyond, it is killed.
const HANG: u32 = 10;
const MEGABYTES: u32 = 2500;

fn program() -> Result<PathBuf> {
    ensure!(
        cfg!(target_os = "linux"),
        "libFuzzer is built on Linux alone"
    );
    let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let built = sh::target().join("fuzz-importers");
    let mut build = sh::cargo();
    build.current_dir(sh::root().join("tools/fuzz-importers"));
    build
        .env("RUSTFLAGS", COVERAGE)
        .env("CARGO_TARGET_DIR", &built);
    build.args(["build", "--locked", "--release", "--target", &target]);
    sh::run(&mut build)?;
    Ok(built.join(target).join("release/kilim-fuzz-importers"))
}

/// What a run said at its end.
struct Campaign {
    line: String,
    /// Inputs that broke the importer in this run.
    broke: Vec<PathBuf>,
}

/// The files of a folder, sorted.
fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder)?.map(|entry| Ok(entry?.path()));
    let mut files = entries.collect::<Result<Vec<_>>>()?;
    files.sort();
    Ok(files)
}

/// The program, to do `job` for a format with a folder.
fn job(program: &Path, job: &str, format: &str, folder: &Path) -> Command {
    let mut command = sh::cmd(program);
    command.args([job, format]).arg(folder);
    command
}

fn campaign(program: &Path, format: &str, work: &Path, options: &Options) -> Result<Campaign> {
    let broke = work.join("found");
    fs::create_dir_all(&broke)?;
    let before = files(&broke)?;
    fs::create_dir_all(work.join("corpus"))?;
    let log = work.join("log");
    let mut run = job(program, "run", format, &broke);
    run.arg(work.join("corpus"));
    let passes = options.passes.then_some("passes");
    run.args(
        ["seeds", "kept"]
            .into_iter()
            .chain(passes)
            .map(|part| work.join(part)),
    );
    if let Some(runs) = options.runs {
        run.arg(format!("-runs={runs}"));
    }
    let seconds = options.seconds.or(options.runs.is_none().then_some(60));
    if let Some(seconds) = seconds {
        run.arg(format!("-max_total_time={seconds}"));
    }
    run.arg(format!("-dict={}", work.join("words").display()));
    run.arg(format!("-artifact_prefix={}/", broke.display()));
    run.arg(format!("-max_len={BYTES}"));
    run.args([
        &format!("-timeout={HANG}"),
        &format!("-rss_limit_mb={MEGABYTES}"),
    ]);
    run.args([
        "-len_control=20",
        "-report_slow_units=5",
        "-print_final_stats=1",
    ]);
    run.stdout(Stdio::null()).stderr(fs::File::create(&log)?);
    let status = run.status().context("cannot run the program")?;
    let said = String::from_utf8_lossy(&fs::read(&log)?).into_owned();
    let mut broke = files(&broke)?;
    broke.retain(|file| !before.contains(file));
    let mut lines = said.lines();
    let Some(done) = lines.rfind(|line| line.starts_with('#') && line.contains("cov:")) else {
        bail!("{format}: {status}, {} says more", log.display());
    };
    // `#123 DONE cov: 45 ft: 67 corp: …`, and `exec/s: 89` at last.
    let after = |word: &str| {
        let mut words = done.split_whitespace().skip_while(|w| *w != word);
        words.nth(1).unwrap_or("?").to_string()
    };
    let runs = done.split_whitespace().next().unwrap_or_default();
    let line = format!(
        "{format}: {} runs, {} a second, {} edges, {} found{}",
        runs.trim_start_matches('#'),
        after("exec/s:"),
        after("cov:"),
        broke.len(),
        if status.success() {
            ""
        } else {
            ", ended by the last"
        }
    );
    Ok(Campaign { line, broke })
}

/// Puts what a format's inputs reach beyond its seeds into the repository, and all that broke its importer.
fn keep(program: &Path, format: &str, work: &Path) -> Result<()> {
    let merged = work.join("merged");
    if merged.exists() {
        fs::remove_dir_all(&merged)?;
    }
    fs::create_dir_all(&merged)?;
    let seeds: Vec<PathBuf> = [files(&work.join("seeds"))?, files(&work.join("passes"))?].concat();
    let there = |file: &Path| merged.join(file.file_name().unwrap_or_default());
    for seed in &seeds {
        fs::copy(seed, there(seed))?;
    }
    let mut merge = job(program, "run", format, &work.join("found"));
    // Edges alone: how often each is taken would make the corpus several times as large.
    merge
        .args(["-merge=1", "-use_counters=0"])
        .arg(format!("-max_len={BYTES}"));
    merge
        .arg(&merged)
        .args([work.join("corpus"), work.join("kept")]);
    merge
        .stdout(Stdio::null())
        .stderr(fs::File::create(work.join("merge.log"))?);
    sh::run(&mut merge)?;
    for seed in &seeds {
        fs::remove_file(there(seed))?;
    }
    for file in files(&work.join("found"))? {
        let name = file
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let name = match name.starts_with("broke-") {
            true => name,
            false => format!("broke-{name}"),
        };
        fs::rename(file, merged.join(name))?;
    }
    sh::run(&mut job(program, "keep", format, &merged))
}

pub fn run(options: &Options) -> Result<()> {
    let program = program()?;
    let known = sh::capture_or_error(sh::cmd(&program).arg("formats"))?;
    let known: Vec<&str> = known.split_whitespace().collect();
    let chosen = |format: &&str| options.format.as_deref().is_none_or(|only| only == *format);
    let formats: Vec<&str> = known.iter().copied().filter(chosen).collect();
    ensure!(!formats.is_empty(), "formats are {}", known.join(", "));
    let mut found = Vec::new();
    for format in formats {
        let work = sh::target().join("fuzz/importers").join(format);
        sh::run(&mut job(&program, "unpack", format, &work))?;
        let campaign = campaign(&program, format, &work, options)?;
        sh::say(&campaign.line);
        if options.keep {
            keep(&program, format, &work)?;
        }
        let broke = campaign.broke.iter();
        found.extend(broke.map(|path| path.display().to_string()));
    }
    if found.is_empty() {
        return Ok(());
    }
    bail!("inputs that broke an importer:\n{}", found.join("\n"))
}
