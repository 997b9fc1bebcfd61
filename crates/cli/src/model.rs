//! The options that all commands on a model share, and loading it with a sign of life.

use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};
use kilim::core::Limits;
use kilim::core::backend::Setting;
use kilim::core::passes::Rule;
use kilim::core::schedule::{OverlappedScheduler, SyncScheduler};
use kilim::{
    BackendId, CacheUse, Error, ErrorCode, LoadOptions, MemoryMode, Pin, Placement, PrecisionPin,
    Report, Runtime, Session,
};

use crate::Failure;

/// What the partitioner may do.
#[derive(Clone, Copy, Default, ValueEnum)]
enum Place {
    /// The first backend that takes a node, but for small islands that crossings would make slower.
    #[default]
    Prefer,
    /// Whatever is priced cheapest.
    Priced,
    /// The first backend that takes a node, whatever crosses.
    Fixed,
}

/// What runs beside what.
#[derive(Clone, Copy, Default, ValueEnum)]
enum Schedule {
    /// Runs one step after the other.
    #[default]
    Sync,
    /// Backends at the same time, and two runs.
    Overlapped,
}

/// How thrifty a session is.
#[derive(Clone, Copy, Default, ValueEnum)]
enum Thrift {
    /// Speed first.
    #[default]
    Normal,
    /// Memory first: weights in their own size only, one plan, nothing kept between runs.
    Limit,
}

/// A number that is not below zero, nor no number.
pub fn not_negative(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(number) if number >= 0.0 => Ok(number),
        _ => Err("a number is needed that is not negative".to_string()),
    }
}

/// Numbers with their names, given as `form`.
fn by_name<T: FromStr>(
    flag: &str,
    form: &str,
    given: &[String],
) -> Result<Vec<(String, T)>, Failure> {
    let read = |text: &String| {
        let number = text
            .rsplit_once('=')
            .and_then(|(name, n)| Some((name.to_string(), n.parse().ok()?)));
        number.ok_or_else(|| Failure::Usage(format!("`{flag} {text}` is not of the form {form}")))
    };
    given.iter().map(read).collect()
}

/// Options about backends.
#[derive(Args, Clone)]
#[command(next_help_heading = "Backends")]
pub struct BackendArgs {
    /// Backends in the order of preference, for instance `wgpu,cpu` or `cpu`.
    #[arg(long, value_delimiter = ',', value_name = "IDS")]
    pub backends: Option<Vec<String>>,
    /// Fail if a node does not run on the first backend.
    #[arg(long)]
    pub strict: bool,
    /// How freely nodes are placed.
    #[arg(long, value_enum, default_value_t)]
    place: Place,
    /// Put an operator or a node on a backend: `op:Conv=cpu` or `node:NAME=cpu`; may be given several
    /// times.
    #[arg(long = "pin", value_name = "WHAT=ID")]
    pins: Vec<Pin>,
    /// Have an operator or a node compute in a floating-point type: `op:Conv=float16` or
    /// `node:NAME=float32`; may be given several times.
    #[arg(long = "precision", value_name = "WHAT=TYPE")]
    precisions: Vec<PrecisionPin>,
    /// Ask something of a backend: `cpu:layout=NCHW`, `cpu:timers=on`, `wgpu:f16=off`, `wgpu:dynamic=off`, or an option
    /// of its own, which `kilim devices` lists: `wgpu:power=low`, `wgpu:device=1`; may be given several times.
    #[arg(long = "config", value_name = "ID:KEY=VALUE")]
    configs: Vec<Setting>,
    /// A folder with libraries of other backends, `libbackend_ID.so`, and of other formats, `libimporter_ID.so`; may be given
    /// several times.
    #[cfg(feature = "plugins")]
    #[arg(long, value_name = "FOLDER")]
    plugin_path: Vec<std::path::PathBuf>,
    /// What runs beside what.
    #[arg(long, value_enum, default_value_t)]
    schedule: Schedule,
    /// The size of a symbolic dimension, for instance `batch=1`; may be given several times.
    #[arg(long = "dim", value_name = "NAME=N")]
    dims: Vec<String>,
    /// Have an output give the last place along an axis alone, and leave out what computes the others: `logits=1`; may be given
    /// several times.
    #[arg(long, value_name = "OUTPUT=AXIS")]
    last_only: Vec<String>,
    /// Threads that the CPU computes with; without a number as many as the machine has cores, at most 16.
    #[arg(long, value_name = "N", env = "KILIM_THREADS", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
    /// Whether to spare memory rather than time.
    #[arg(long, value_enum, default_value_t)]
    memory_mode: Thrift,
    /// What the model may take: `strict` for models that are not trusted, or single limits, `nodes=1000,run_seconds=5`.
    #[arg(long, value_name = "LIMITS")]
    limits: Option<Limits>,
    /// Read weights through links that lead out of the model's folder.
    #[arg(long)]
    follow_links: bool,
    /// Run the graph as the file has it, without optimisation.
    #[arg(long)]
    no_optimise: bool,
    /// Do not apply a rule of the optimisation, which `inspect --passes` lists; may be given several times.
    #[arg(long, value_name = "RULE")]
    without: Vec<Rule>,
    /// Measure the kernels between which a backend has a choice, and take the fastest.
    #[arg(long)]
    tune: bool,
    /// Take what is known of the devices from this file (what was tuned, compiled pipelines), and keep
    /// it there for the next time. Drivers do not check what they compiled: name only a file that
    /// Kilim has written.
    #[arg(long, value_name = "FILE")]
    cache: Option<PathBuf>,
}

impl BackendArgs {
    pub fn options(&self) -> Result<LoadOptions, Failure> {
        let mut options = LoadOptions::default();
        if let Some(ids) = &self.backends {
            options.backends = ids.iter().map(|id| BackendId::from(id.as_str())).collect();
        }
        options.strict = self.strict;
        options.follow_links = self.follow_links;
        if let Some(limits) = &self.limits {
            options.limits = limits.clone();
        }
        options.pins = self.pins.clone();
        options.precisions = self.precisions.clone();
        for setting in &self.configs {
            options.configs.set(setting);
        }
        #[cfg(feature = "plugins")]
        options.plugin_path.clone_from(&self.plugin_path);
        if self.backends.is_none() {
            options.backends = available(&options)?;
        }
        options.optimise = !self.no_optimise;
        options.without.clone_from(&self.without);
        options.tune = self.tune;
        options.context.threads = self.threads.map(usize::from);
        options.context.memory = match self.memory_mode {
            Thrift::Normal => MemoryMode::Normal,
            Thrift::Limit => MemoryMode::Limit,
        };
        options.placement = match self.place {
            Place::Prefer => Placement::Prefer,
            Place::Priced => Placement::Priced,
            Place::Fixed => Placement::Fixed,
        };
        options.scheduler = match self.schedule {
            Schedule::Sync => Arc::new(SyncScheduler),
            Schedule::Overlapped => Arc::new(OverlappedScheduler::default()),
        };
        options.dims = by_name("--dim", "NAME=N", &self.dims)?
            .into_iter()
            .collect();
        let last_only = by_name("--last-only", "OUTPUT=AXIS", &self.last_only)?;
        options.last_only = last_only.into_iter().collect();
        self.take_cache(&options)?;
        Ok(options)
    }

    /// Gives the backends what the file of the cache holds, if there is one already.
    fn take_cache(&self, options: &LoadOptions) -> Result<(), Failure> {
        let Some(file) = &self.cache else {
            return Ok(());
        };
        let cache = match std::fs::read(file) {
            Ok(cache) => cache,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            Err(e) => return Err(cannot("read", file, &e)),
        };
        let runtime = Runtime::shared();
        // What is known is given to devices that are open, and those that the options choose have to be.
        pollster::block_on(runtime.backends(options))?;
        // SAFETY: the user says that it is what `keep_cache` wrote; a damaged file is not used.
        let used = pollster::block_on(unsafe { runtime.load_cache(&cache) });
        match used {
            Ok(CacheUse::Taken) => {}
            Ok(CacheUse::Ignored(why)) => eprintln!("warning: {why}: everything is measured anew"),
            // It is not replaced: it may be anything.
            Err(error) => return Err(error.with_got(file.display()).into()),
        }
        Ok(())
    }

    /// Writes what is known of the devices now to the file of the cache, which is replaced as a whole.
    pub fn keep_cache(&self) -> Result<(), Failure> {
        let Some(file) = &self.cache else {
            return Ok(());
        };
        let new = file.with_extension(format!("{}.new", std::process::id()));
        let written = std::fs::write(&new, Runtime::shared().save_cache());
        let written = written.and_then(|()| std::fs::rename(&new, file));
        written.map_err(|e| cannot("write", file, &e))
    }
}

fn cannot(what: &str, file: &Path, error: &std::io::Error) -> Failure {
    let message = format!("cannot {what} the cache `{}`: {error}", file.display());
    Error::new(ErrorCode::Io, message).into()
}

/// What was measured of kernels.
pub fn print_tuning(report: &Report) {
    for tuned in &report.tuning {
        let times = tuned.times.iter();
        let times = times.map(|t| format!("{} {:.3} ms", t.algorithm, t.seconds * 1e3));
        let times: Vec<String> = times.collect();
        let how = match times.is_empty() {
            true => "known before".to_string(),
            false => times.join(", "),
        };
        let (backend, class, algorithm) = (&tuned.backend, &tuned.class, &tuned.algorithm);
        say!("{backend}: {class}: {algorithm} ({how})");
    }
}

/// The backends for this machine. A note says which are left out.
fn available(options: &LoadOptions) -> Result<Vec<BackendId>, Failure> {
    let picked = pollster::block_on(Runtime::shared().pick(options))?;
    for (id, reason) in picked.skipped {
        eprintln!("note: the backend `{id}` is left out: {reason}");
    }
    Ok(picked.backends)
}

/// A spinner on the terminal; nothing where the output is not one.
pub fn spinner(message: String) -> ProgressBar {
    let bar = ProgressBar::new_spinner().with_message(message);
    let style = ProgressStyle::with_template("{spinner} {msg} {elapsed}");
    if let Ok(style) = style {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(100));
    bar
}

/// Loads a model.
pub async fn load(path: &Path, options: LoadOptions) -> Result<Session, Failure> {
    let bar = spinner(format!("loading {}", path.display()));
    let session = kilim::load(path, options).await;
    bar.finish_and_clear();
    Ok(session?)
}
