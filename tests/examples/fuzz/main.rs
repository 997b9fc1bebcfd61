//! Runs random models until a number is reached: `cargo xtask fuzz`.

mod progress;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Mutex;
use std::time::{Duration, Instant};
use std::{fs, io, process, thread};

use clap::Parser;
use kilim::BackendId;
use kilim_test_support::material::python;
use kilim_tests::fuzz::{Case, Draw, Generator, Outcome, quiet_panics};
use progress::Progress;

/// A case that takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(120);

/// Random models against float64 references
#[derive(Parser)]
struct Args {
    /// How many models
    #[arg(long, default_value_t = 200_000)]
    cases: u64,
    /// Seed of the models: equal seeds give equal models
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// The number of the first model
    #[arg(long, default_value_t = 0)]
    first: u64,
    /// The first that takes a node runs it
    #[arg(long, default_value = "cpu", value_delimiter = ',')]
    backends: Vec<String>,
    /// Only models about these operators, separated by commas
    #[arg(long, default_value = "")]
    ops: String,
    /// How many generators run beside each other [default: one for each core; one on a GPU]
    #[arg(long)]
    jobs: Option<u64>,
    /// Where failing cases are written
    #[arg(long, default_value = "target/fuzz")]
    out: PathBuf,
    /// Run the cases of a file that was written before
    #[arg(long)]
    replay: Option<PathBuf>,
    /// How many failing cases of an operator are reduced and kept
    #[arg(long, default_value_t = 3)]
    keep: usize,
    /// Single operators against onnxruntime instead, which the Python must have
    #[arg(long)]
    peers: bool,
    /// A Python with the packages of tools/requirements.txt
    #[arg(long, overrides_with = "python")]
    python: Option<PathBuf>,
}

/// What a worker is at.
type Busy = Mutex<Option<(String, Instant)>>;

struct Fuzz {
    args: Args,
    python: PathBuf,
    backends: Vec<BackendId>,
    jobs: u64,
    progress: Mutex<Progress>,
    busy: Vec<Busy>,
}

impl Fuzz {
    fn generator(&self, job: u64) -> io::Result<Generator> {
        if let Some(file) = &self.args.replay {
            return Generator::replay(file);
        }
        let all = self.args.cases;
        let draw = Draw {
            seed: self.args.seed,
            first: self.args.first + job,
            step: self.jobs,
            cases: all / self.jobs + u64::from(job < all % self.jobs),
            ops: self.args.ops.clone(),
            smaller: false,
            peers: self.args.peers,
        };
        Generator::start(&self.python, &draw)
    }

    /// Runs the cases of one generator. The case that runs is in a file, for the case that it ends
    /// the process.
    fn work(&self, job: u64) -> io::Result<()> {
        let running = self.args.out.join(format!("running_{job}.bin"));
        let mut generator = self.generator(job)?;
        while let Some(case) = generator.read()? {
            fs::write(&running, case.bytes())?;
            let busy = &self.busy[job as usize];
            *lock(busy) = Some((case.header.name.clone(), Instant::now()));
            let outcome = pollster::block_on(case.run(&self.backends));
            *lock(busy) = None;
            let kept = lock(&self.progress).count(&case.header, &outcome);
            if let Outcome::Wrong(why) = outcome
                && kept <= self.args.keep
            {
                self.keep(&case, &why)?;
            }
        }
        fs::remove_file(running)
    }

    /// Writes the smallest part of a failing case that fails by itself.
    fn keep(&self, case: &Case, why: &str) -> io::Result<()> {
        let folder = self.args.out.join(&case.header.name);
        if self.args.replay.is_none() {
            let draw = Draw {
                seed: self.args.seed,
                first: case.header.index,
                step: 1,
                cases: 1,
                ops: self.args.ops.clone(),
                smaller: true,
                peers: self.args.peers,
            };
            let mut parts = Generator::start(&self.python, &draw)?;
            while let Some(part) = parts.read()? {
                if let Outcome::Wrong(why) = pollster::block_on(part.run(&self.backends)) {
                    lock(&self.progress).found(&part.header, &why);
                    return part.save(&folder, &why);
                }
            }
        }
        lock(&self.progress).found(&case.header, why);
        case.save(&folder, why)
    }

    /// Ends the process when a case hangs.
    fn watch(&self) {
        for busy in &self.busy {
            if let Some((name, since)) = &*lock(busy)
                && since.elapsed() > PATIENCE
            {
                eprintln!("\n{name} hangs; it is in {}", self.args.out.display());
                process::exit(1);
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}

fn main() -> ExitCode {
    let args = Args::parse();
    let Some(python) = args.python.clone().or_else(python) else {
        eprintln!("error: there is no Python with onnx; `cargo xtask setup` makes it");
        return ExitCode::FAILURE;
    };
    let cores = thread::available_parallelism().map_or(1, |n| n.get() as u64);
    let gpu = args.backends.iter().any(|b| b == "wgpu");
    let alone = args.replay.is_some() || gpu;
    let jobs = args.jobs.unwrap_or(if alone { 1 } else { cores }).max(1);
    let fuzz = Fuzz {
        python,
        backends: args.backends.iter().map(|b| b.as_str().into()).collect(),
        jobs,
        progress: Mutex::new(Progress::new(args.cases)),
        busy: (0..jobs).map(|_| Mutex::new(None)).collect(),
        args,
    };
    if let Err(e) = fs::create_dir_all(&fuzz.args.out) {
        eprintln!("error: {}: {e}", fuzz.args.out.display());
        return ExitCode::FAILURE;
    }
    quiet_panics();
    let failed = thread::scope(|scope| {
        let workers: Vec<_> = (0..jobs)
            .map(|job| {
                let fuzz = &fuzz;
                scope.spawn(move || fuzz.work(job))
            })
            .collect();
        while workers.iter().any(|w| !w.is_finished()) {
            thread::sleep(Duration::from_millis(200));
            lock(&fuzz.progress).show();
            fuzz.watch();
        }
        let mut failed = false;
        for worker in workers {
            let result = worker
                .join()
                .unwrap_or_else(|_| Err(io::Error::other("a panic")));
            if let Err(e) = result {
                eprintln!("\nerror: {e}");
                failed = true;
            }
        }
        failed
    });
    let wrong = lock(&fuzz.progress).summary();
    if failed || wrong > 0 {
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}
