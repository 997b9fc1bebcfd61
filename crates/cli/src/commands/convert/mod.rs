//! `kilim convert`.

mod check;
mod samples;
mod write;

use std::path::PathBuf;

use clap::ValueEnum;
use kilim::{Graph, Port, RunOptions, Runtime};
use kilim_convert::onnx::OPSETS;
use kilim_convert::quantise::{Ranges, Scheme, half_precision, measured, quantise};
use kilim_convert::{OnnxModel, OnnxOptions, Weights, lower};

use crate::Failure;
use crate::commands::inspect::bytes;
use crate::data::source::InputArgs;
use crate::model::{self, BackendArgs, not_negative};
use samples::{Sample, Samples};

pub const EXAMPLES: &str = "\
Examples:
  kilim convert model.tflite model.onnx
  kilim convert model.gguf model.onnx --external --opset 24
  kilim convert model.onnx half.onnx --fp16
  kilim convert model.onnx small.onnx --int8
  kilim convert model.onnx static.onnx --int8 --samples pictures/
  kilim convert model.onnx packed.onnx --int4";

/// What computes in half precision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Half {
    /// Weights are stored in it and widened where they are read.
    Weights,
    /// Everything but inputs and outputs.
    All,
}

#[derive(clap::Args)]
pub struct Args {
    /// The model, of any format.
    #[arg(value_name = "IN")]
    file: PathBuf,
    /// The ONNX file to write; one that is there is replaced.
    #[arg(value_name = "OUT", value_parser = onnx)]
    out: PathBuf,
    /// The operator set; without it 21, or a later one that an operator needs.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i64).range(OPSETS))]
    opset: Option<i64>,
    /// Put the weights into a file OUT.data beside the model; those of more than 2 GB always go there.
    #[arg(long)]
    external: bool,
    /// Store weights in float16, or have everything compute in it with `--fp16=all`.
    #[arg(long, value_name = "WHAT", num_args = 0..=1, require_equals = true, default_missing_value = "weights",
        group = "scheme")]
    fp16: Option<Half>,
    /// Store weights as int8. With `--samples` data is quantised by the ranges that it has there, else products
    /// quantise their data when the model runs.
    #[arg(long, group = "scheme")]
    int8: bool,
    /// Store the weights of products as 4 bits, 32 neighbours with a scale.
    #[arg(long, group = "scheme")]
    int4: bool,
    /// Inputs that the model is to work well on: a file for each sample, .npz with an array for each input, or .npy or
    /// a picture for a model with one input. What is written is compared with the model on them.
    #[arg(long, value_name = "FOLDER")]
    samples: Option<PathBuf>,
    /// Do not run what was written beside the model.
    #[arg(long)]
    unchecked: bool,
    /// The largest difference of an output, relative to its largest magnitude. A file that is only another form of the model may
    /// differ by 0.0001 if nothing is said, one with smaller weights as much as it does.
    #[arg(long, value_name = "T", value_parser = not_negative)]
    tolerance: Option<f64>,
    #[command(flatten)]
    inputs: InputArgs,
    #[command(flatten)]
    backends: BackendArgs,
}

/// The name of an ONNX file.
fn onnx(text: &str) -> Result<PathBuf, String> {
    let file = PathBuf::from(text);
    match file.extension() {
        Some(e) if e.eq_ignore_ascii_case("onnx") => Ok(file),
        _ => Err("models are written as .onnx".to_string()),
    }
}

/// What a file may differ by that says the same in other words: sums are added up in another order.
const REWRITTEN: f64 = 1e-4;

pub async fn run(args: Args) -> Result<(), Failure> {
    let mut options = args.backends.options()?;
    let runtime = Runtime::shared();
    let mut graph = runtime.parse(args.file.as_path(), &options).await?;
    graph.fix_dims(&std::mem::take(&mut options.dims))?;
    let samples = match (&args.samples, args.unchecked) {
        (None, true) => Samples::default(),
        (folder, _) => {
            let ports = Port::all(&graph, graph.given_inputs());
            Samples::read(folder.as_deref(), &args.inputs, &ports)?
        }
    };
    let plain = lower(&graph)?;
    let scheme = scheme(&args, &plain, &samples, &options).await?;
    let (written, smaller) = match (&scheme, args.fp16) {
        (None, Some(Half::All)) => {
            let (halved, single) = half_precision(&plain)?;
            if !single.is_empty() {
                say!(
                    "{} nodes stay in float32: {}",
                    single.len(),
                    single.join(", ")
                );
            }
            (halved, true)
        }
        (None, _) => (plain.clone(), false),
        (Some(scheme), _) => {
            let quantised = quantise(&plain, scheme)?;
            say!("{} nodes have smaller weights", quantised.nodes.len());
            (quantised.graph, true)
        }
    };
    save(&args, &written)?;
    if args.unchecked {
        return Ok(());
    }
    let found = check::outputs(&args.out, graph, &samples, &options).await?;
    check::print_outputs(&found, &samples);
    if let Some(scheme) = &scheme {
        let nodes = check::nodes(&plain, scheme, &samples, &options).await?;
        check::print_nodes(&nodes);
    }
    let tolerance = match smaller {
        true => args.tolerance.unwrap_or(f64::INFINITY),
        false => args.tolerance.unwrap_or(REWRITTEN),
    };
    match found.iter().all(|output| output.error <= tolerance) {
        true => Ok(()),
        false => Err(Failure::Missed),
    }
}

/// How weights are made smaller; ranges are measured where samples say how.
async fn scheme(
    args: &Args,
    plain: &Graph,
    samples: &Samples,
    options: &kilim::LoadOptions,
) -> Result<Option<Scheme>, Failure> {
    Ok(match (args.fp16, args.int8, args.int4) {
        (Some(Half::Weights), ..) => Some(Scheme::Half),
        (_, _, true) => Some(Scheme::Block4),
        (_, true, _) if samples.are_given() => {
            Some(Scheme::Static8(ranges(plain, samples, options).await?))
        }
        (_, true, _) => Some(Scheme::Dynamic8),
        _ => None,
    })
}

/// The ranges of all data on the samples.
async fn ranges(
    plain: &Graph,
    samples: &Samples,
    options: &kilim::LoadOptions,
) -> Result<Ranges, Failure> {
    let bar = model::spinner("measuring ranges".to_string());
    let runtime = Runtime::shared();
    let mut session = runtime.session(measured(plain), options.clone()).await?;
    let mut ranges = Ranges::default();
    for sample in samples.all() {
        let seen = session
            .run_data(&of(sample), &RunOptions::default())
            .await?;
        for (name, datum) in &seen {
            ranges.see(name, datum.tensor()?)?;
        }
    }
    bar.finish_and_clear();
    Ok(ranges)
}

/// A sample as runs take it.
fn of(sample: &Sample) -> Vec<(&str, kilim::Datum)> {
    let inputs = sample.iter();
    inputs
        .map(|(name, datum)| (name.as_str(), datum.clone()))
        .collect()
}

/// Writes the file, and says how large it is.
fn save(args: &Args, graph: &Graph) -> Result<(), Failure> {
    let beside = write::beside(&args.out)?;
    let weights = match args.external {
        true => Weights::Beside(beside),
        false => Weights::InsideOrBeside(beside),
    };
    let options = OnnxOptions {
        opset: args.opset,
        weights,
    };
    let model = OnnxModel::new(graph, &options)?;
    let before = std::fs::metadata(&args.file).map_or(0, |about| about.len());
    let written = write::save(&model, &args.out)?;
    say!("{}: {}", args.file.display(), bytes(before as usize));
    for (file, size) in written {
        say!("{}: {}", file.display(), bytes(size as usize));
    }
    say!("operator set {}", model.opset());
    Ok(())
}
