//! The embedded model at work: in the web page, or headless, four ways.

use crate::{build, serve, setup, sh};
use anyhow::{Context, Result, bail};

#[derive(clap::Args)]
pub struct Args {
    /// Print the model's answer from WebGPU, WASM, native wgpu and the native CPU, and compare them
    #[arg(long)]
    headless: bool,
    /// The port to serve the page on
    #[arg(long, default_value_t = 8080)]
    port: u16,
}

const MODEL: &str = "assets/digits.onnx";
/// A drawing of the digit in its name that the model has not seen.
const SAMPLE: &str = "assets/digit-3.png";
const EXPECTED: usize = 3;

pub fn run(args: &Args) -> Result<()> {
    if args.headless {
        return headless();
    }
    build::wasm()?;
    build::www()?;
    let url = serve::start(sh::root().join("www/dist"), args.port)?;
    println!("Kilim's page is at {url} (Ctrl-C ends it)");
    loop {
        std::thread::park();
    }
}

/// Asks the model about the sample on each of the four ways; all must give the digit that was drawn.
pub fn headless() -> Result<()> {
    let browser = setup::browser()?;
    browser.require_playwright()?;
    setup::vulkan()?;
    build::wasm()?;
    build::www()?;
    println!("build the kilim binary");
    sh::run(sh::cargo().args(["build", "-p", "kilim-cli"]))?;
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
    let url = serve::start(sh::root(), 0)?;
    for (way, backend) in [("WebGPU", "wgpu"), ("WASM", "cpu")] {
        let mut node = sh::cmd("node");
        browser.tell(&mut node);
        node.args([
            "tools/demo.mjs",
            "--url",
            &url,
            "--model",
            MODEL,
            "--image",
            SAMPLE,
            "--backend",
            backend,
        ]);
        note(way, sh::capture_or_error(&mut node));
    }
    for (way, backend) in [("native wgpu", "wgpu"), ("native CPU", "cpu")] {
        let mut kilim = sh::cmd(build::native_cli("debug"));
        let input = format!("image={SAMPLE}");
        kilim.args([
            "run",
            MODEL,
            "--input",
            &input,
            "--backends",
            backend,
            "--top",
            "1",
        ]);
        note(way, sh::capture_or_error(&mut kilim));
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
