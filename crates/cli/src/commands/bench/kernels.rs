//! A roofline of the kernels of the CPU: `--kernels`.

use clap::{Args as _, Command, FromArgMatches};
use comfy_table::{Table, presets};
use kilim::SessionOptions;
use kilim::roofline::{Peaks, Roofline, Row, Settings, Subject, TOLERATED, Timed};
use serde::Serialize;

use crate::Failure;
use crate::model::not_negative;
use crate::out;

/// The argument that asks for kernels.
const FLAG: &str = "kernels";
/// Arguments for a model that mean the same for kernels.
const SHARED: [&str; 3] = ["json", "runs", "threads"];

#[derive(clap::Args)]
#[command(next_help_heading = "Kernels")]
pub struct KernelArgs {
    /// Time the kernels of the CPU beside the machine's peak, instead of a model; with a text, those for shapes whose
    /// names contain it: `--kernels=Conv`. `--runs` is the number of samples.
    #[arg(
        long,
        value_name = "TEXT",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = ""
    )]
    kernels: Option<String>,
    /// Fail where another kernel is faster than the chosen one by more than 5 %.
    #[arg(long, requires = FLAG)]
    check: bool,
    /// Milliseconds that a sample takes at least.
    #[arg(long, requires = FLAG, value_name = "MS", default_value = "5", value_parser = not_negative)]
    sample_ms: f64,
    #[arg(skip)]
    json: bool,
    #[arg(skip)]
    runs: u32,
    #[arg(skip)]
    threads: Option<u16>,
}

/// Adds the arguments to those for a model, which are refused beside them unless they are shared.
pub fn augment(command: Command) -> Command {
    let ids = command.get_arguments().map(|a| a.get_id().clone());
    let others: Vec<_> = ids.filter(|id| !SHARED.contains(&id.as_str())).collect();
    let command = KernelArgs::augment_args(command).mut_arg("file", |file| {
        file.required(false).required_unless_present(FLAG)
    });
    // `requires` does not ask for what conflicts with an argument that is there.
    [FLAG, "check", "sample_ms"]
        .into_iter()
        .fold(command, |command, own| {
            command.mut_arg(own, |own| own.conflicts_with_all(&others))
        })
}

impl KernelArgs {
    /// The arguments, where kernels are asked for.
    pub fn wanted(matches: &clap::ArgMatches) -> Result<Option<KernelArgs>, clap::Error> {
        let args = KernelArgs::from_arg_matches(matches)?;
        let given = args.kernels.is_some();
        Ok(given.then(|| KernelArgs {
            json: matches.get_flag("json"),
            runs: matches.get_one("runs").copied().unwrap_or(1),
            threads: matches.get_one("threads").copied(),
            ..args
        }))
    }
}

#[derive(Serialize)]
struct Figures<'a> {
    peaks: &'a Peaks,
    shapes: &'a [Row],
    /// Shapes whose kernel is not the fastest.
    wrong: Vec<&'a str>,
}

pub fn run(args: &KernelArgs) -> Result<(), Failure> {
    let text = args.kernels.as_deref().unwrap_or_default();
    let subjects = Subject::all().filter(|subject| subject.to_string().contains(text));
    let subjects: Vec<Subject> = subjects.collect();
    if subjects.is_empty() {
        let message = format!("no shape is called `{text}`; `kilim bench --kernels` lists all");
        return Err(Failure::Usage(message));
    }
    let bar = indicatif::ProgressBar::new(subjects.len() as u64);
    let style = indicatif::ProgressStyle::with_template("{wide_bar} {pos}/{len} {msg}");
    if let Ok(style) = style {
        bar.set_style(style);
    }
    bar.set_message("the machine's peak");
    let roofline = Roofline::new(Settings {
        threads: args.threads.map(usize::from),
        sample: args.sample_ms * 1e-3,
        turns: args.runs as usize,
        clock: SessionOptions::default().clock,
    })?;
    let mut rows = Vec::with_capacity(subjects.len());
    for subject in subjects {
        bar.set_message(subject.to_string());
        rows.push(roofline.measure(subject)?);
        bar.inc(1);
    }
    bar.finish_and_clear();
    let figures = Figures {
        peaks: roofline.peaks(),
        shapes: &rows,
        wrong: wrong(&rows).map(|row| row.shape.as_str()).collect(),
    };
    if args.json {
        out::json(&figures)?;
    } else {
        print(&figures);
    }
    verdict(&rows, args.check)
}

fn wrong(rows: &[Row]) -> impl Iterator<Item = &Row> {
    rows.iter().filter(|row| row.wrong)
}

/// `Missed` where a choice is wrong and that is to be a failure.
fn verdict(rows: &[Row], check: bool) -> Result<(), Failure> {
    match check && wrong(rows).next().is_some() {
        true => Err(Failure::Missed),
        false => Ok(()),
    }
}

fn print(figures: &Figures) {
    let peaks = figures.peaks;
    let threads = match peaks.threads {
        1 => "1 thread".to_string(),
        many => format!("{many} threads"),
    };
    let giga = |rate: f64| rate / 1e9;
    say!(
        "peaks      {}, {threads}: float32 {:.1} GFLOP/s, int16 {:.1} and int8 {:.1} GOP/s, memory {:.1} GB/s",
        peaks.instructions,
        giga(peaks.float32),
        giga(peaks.int16),
        giga(peaks.int8),
        giga(peaks.memory)
    );
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_header([
        "\nshape",
        "\nkernel (* chosen)",
        "\nms",
        "\nGFLOP/s",
        "of\npeak",
        "of\nmemory",
    ]);
    for row in figures.shapes {
        let mut shape = row.shape.as_str();
        for kernel in &row.kernels {
            table.add_row(cells(shape, kernel));
            shape = "";
        }
    }
    say!("{table}");
    for row in wrong(figures.shapes) {
        let chosen = row.kernels.iter().find(|kernel| kernel.chosen);
        let chosen = chosen.map_or("", |kernel| kernel.name.as_str());
        say!(
            "wrong: {}: {chosen} takes {:.0} % more time than {}",
            row.shape,
            100.0 * row.loss,
            row.fastest
        );
    }
    if figures.wrong.is_empty() {
        say!("no choice is wrong by more than {:.0} %", 100.0 * TOLERATED);
    }
}

fn cells(shape: &str, kernel: &Timed) -> [String; 6] {
    let mark = if kernel.chosen { "* " } else { "  " };
    let share = |share: Option<f64>| share.map_or(String::new(), |s| format!("{:.0} %", 100.0 * s));
    [
        shape.to_string(),
        format!("{mark}{}", kernel.name),
        kernel
            .seconds
            .map_or("much slower".to_string(), |s| format!("{:.3}", s * 1e3)),
        kernel
            .rate
            .map_or(String::new(), |r| format!("{:.1}", r / 1e9)),
        share(kernel.of_peak),
        share(kernel.of_memory),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use kilim::roofline::Arithmetic;

    fn row(loss: f64, wrong: bool) -> Row {
        let kernel = |name: &str, chosen| Timed {
            name: name.to_string(),
            chosen,
            seconds: Some(1.0),
            rate: Some(2e9),
            of_peak: Some(0.5),
            of_memory: Some(0.25),
        };
        Row {
            shape: "MatMul".to_string(),
            operations: 2e9,
            bytes: 12,
            arithmetic: Arithmetic::Float32,
            kernels: vec![kernel("slow", true), kernel("fast", false)],
            fastest: "fast".to_string(),
            loss,
            wrong,
        }
    }

    #[test]
    fn a_wrong_choice_fails_where_that_is_asked_for() {
        let rows = [row(0.0, false), row(0.06, true)];
        assert!(matches!(verdict(&rows, true), Err(Failure::Missed)));
        assert!(verdict(&rows, false).is_ok());
        assert!(verdict(&[row(0.0, false), row(0.04, false)], true).is_ok());
    }

    #[test]
    fn a_kernel_that_was_stopped_has_no_figures() {
        let mut stopped = row(0.0, false).kernels.remove(1);
        assert_eq!(
            cells("", &stopped),
            ["", "  fast", "1000.000", "2.0", "50 %", "25 %"]
        );
        stopped.seconds = None;
        (stopped.rate, stopped.of_peak, stopped.of_memory) = (None, None, None);
        assert_eq!(
            cells("", &stopped),
            ["", "  fast", "much slower", "", "", ""]
        );
    }
}
