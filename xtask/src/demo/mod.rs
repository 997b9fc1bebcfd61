//! The embedded model at work: in the web page, or headless, four ways.

mod progress;

use crate::{build, serve, setup, sh};
use anyhow::{Context, Result, anyhow, bail};
use progress::{Lane, Progress, Step};
use std::fs;
use std::path::PathBuf;
use std::sync::mpsc;
use std::thread;

#[derive(clap::Args)]
pub struct Args {
    /// Print the model's answer from WebGPU, WASM, native wgpu and the native CPU, and compare them
    #[arg(long)]
    headless: bool,
    /// The port to serve the page on
    #[arg(long, default_value_t = 8080)]
    port: u16,
}

const MODEL: &str = "digits.onnx";
/// A drawing of the digit in its name that the model has not seen.
const SAMPLE: &str = "digit-3.png";
const EXPECTED: usize = 3;
/// What the browser has made of the drawing, for the command line, which is built without decoders of pictures.
const PIXELS: &str = "pixels.npy";

const fn step(lane: Lane, seconds: f64, name: &'static str) -> Step {
    Step {
        name,
        lane,
        seconds,
    }
}

const PAGE: &[Step] = &[
    step(Lane::Web, 100.0, "compile the runtime for pages"),
    step(Lane::Web, 45.0, "optimise the runtime"),
    step(Lane::Native, 100.0, "build wasm-bindgen, install wasm-opt"),
    step(Lane::Installs, 5.0, "install npm packages"),
    step(Lane::Last, 5.0, "make the page"),
];

const HEADLESS: &[Step] = &[
    step(Lane::Web, 100.0, "compile the runtime for pages"),
    step(Lane::Web, 45.0, "optimise the runtime"),
    step(Lane::Native, 100.0, "build wasm-bindgen, install wasm-opt"),
    step(Lane::Native, 70.0, "build the command line"),
    step(
        Lane::Installs,
        25.0,
        "find or install a browser and a Vulkan driver",
    ),
    step(Lane::Last, 5.0, "make the page"),
    step(Lane::Last, 6.0, "ask the model"),
];

pub fn run(args: &Args) -> Result<()> {
    if args.headless {
        return headless();
    }
    let url = with_progress("demo-page", PAGE, |progress| {
        let installs = || setup::npm("www").map(drop);
        make(progress, installs, |_| Ok(()))?;
        let folder = progress.step(Lane::Last, build::portable_www)?;
        serve::start(folder, args.port)
    })?;
    println!("Kilim's page is at {url} (Ctrl-C ends it)");
    println!(
        "it has the build for every browser; `cargo xtask build` makes those for newer ones, too"
    );
    loop {
        thread::park();
    }
}

/// Asks the model about the sample on each of the four ways; all must give the digit that was drawn.
fn headless() -> Result<()> {
    headless_with(build::demo_cli)
}

/// [`headless`] with the command line that other tests run, too.
pub fn test() -> Result<()> {
    headless_with(build::tested_cli)
}

fn headless_with(cli: fn() -> Result<PathBuf>) -> Result<()> {
    with_progress("demo-headless", HEADLESS, |progress| {
        let installs = || {
            let browser = setup::browser()?;
            browser.require_playwright()?;
            setup::vulkan()?;
            setup::npm("www")?;
            Ok(browser)
        };
        let native = |progress: &Progress| progress.step(Lane::Native, cli);
        let (browser, kilim) = make(progress, installs, native)?;
        let folder = progress.step(Lane::Last, build::portable_www)?;
        progress.step(Lane::Last, || ask(&browser, kilim, folder))
    })
}

/// Runs a job, and says what is under way meanwhile.
fn with_progress<T>(
    name: &str,
    steps: &'static [Step],
    job: impl FnOnce(&Progress) -> Result<T>,
) -> Result<T> {
    let progress = Progress::new(steps, sh::target().join("xtask").join(name));
    thread::scope(|scope| {
        scope.spawn(|| progress.watch());
        let result = job(&progress);
        progress.end(result.is_ok());
        result
    })
}

/// Makes the binary that every browser runs, and beside it what `installs` and, once wasm-bindgen is there, `native` give.
fn make<I: Send, N: Send>(
    progress: &Progress,
    installs: impl FnOnce() -> Result<I> + Send,
    native: impl FnOnce(&Progress) -> Result<N> + Send,
) -> Result<(I, N)> {
    thread::scope(|scope| {
        let (give, tools) = mpsc::channel();
        let building = scope.spawn(move || {
            // Nobody takes them if nothing could be compiled.
            let _ = give.send(progress.step(Lane::Native, build::Tools::find)?);
            native(progress)
        });
        let installing = scope.spawn(|| progress.step(Lane::Installs, installs));
        let web = || {
            let built = progress.step(Lane::Web, || build::PORTABLE.compile())?;
            let tools = tools
                .recv()
                .context("wasm-bindgen and wasm-opt are missing")?;
            progress.step(Lane::Web, || build::PORTABLE.finish(&built, &tools))
        };
        let web = web();
        let built = building
            .join()
            .map_err(|_| anyhow!("a thread panicked"))??;
        let installed = installing
            .join()
            .map_err(|_| anyhow!("a thread panicked"))??;
        web?;
        Ok((installed, built))
    })
}

/// The four answers: of the package in `folder` in the browser, and of the program `kilim`.
fn ask(browser: &setup::Browser, kilim: PathBuf, folder: PathBuf) -> Result<()> {
    let assets = sh::root().join("assets");
    for file in [MODEL, SAMPLE] {
        fs::copy(assets.join(file), folder.join(file))?;
    }
    let pixels = folder.join(PIXELS);
    println!("{SAMPLE} through {MODEL}:");
    let mut wrong = Vec::new();
    let mut note = |way: &str, output: Result<String>| {
        let line = output.and_then(|text| answer(&text));
        match &line {
            Ok((_, line)) => println!("  {way:12} {line}"),
            Err(error) => println!("  {way:12} error: {error:#}"),
        }
        if !line.is_ok_and(|(digit, _)| digit == EXPECTED) {
            wrong.push(way.to_owned());
        }
    };
    // One backend each, without another to fall back to: what it cannot run is an error.
    let url = serve::start(folder, 0)?;
    for (way, backend) in [("WebGPU", "wgpu"), ("WASM", "cpu")] {
        let mut node = sh::cmd("node");
        browser.tell(&mut node);
        node.args(["tools/demo.mjs", "--url", &url, "--backend", backend]);
        node.args(["--model", MODEL, "--image", SAMPLE, "--pixels"]);
        note(way, sh::capture_or_error(node.arg(&pixels)));
    }
    for (way, backend) in [("native wgpu", "wgpu"), ("native CPU", "cpu")] {
        let mut run = sh::cmd(&kilim);
        run.arg("run")
            .arg(assets.join(MODEL))
            .arg("--input")
            .arg(&pixels);
        run.args(["--backends", backend, "--top", "1"]);
        note(way, sh::capture_or_error(&mut run));
    }
    if !wrong.is_empty() {
        bail!("the answer was not {EXPECTED} from: {}", wrong.join(", "));
    }
    println!("all four say {EXPECTED}");
    Ok(())
}

/// The digit and the line of an answer: the first line that starts with a number.
fn answer(text: &str) -> Result<(usize, String)> {
    let digit = |line: &str| {
        line.split_whitespace()
            .next()
            .and_then(|word| word.parse().ok())
    };
    text.lines()
        .find_map(|line| Some((digit(line)?, line.trim().to_owned())))
        .with_context(|| format!("no digit in the answer: {text}"))
}

#[cfg(test)]
mod tests {
    use super::answer;

    #[test]
    fn the_answer_is_the_first_line_that_starts_with_a_number() {
        let text = "probabilities: float32 [1, 10]\n       3  0.970140\n1.20 ms\n";
        assert_eq!(answer(text).ok(), Some((3, "3  0.970140".to_owned())));
        assert!(answer("no such model").is_err());
    }
}
