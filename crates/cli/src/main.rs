//! `kilim`: runs, inspects, times and checks models from the command line.

#[macro_use]
mod out;

mod check;
mod commands;
mod data;
#[cfg(feature = "text")]
mod interrupt;
mod mixed;
mod model;
mod session;
mod timeline;
mod times;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use kilim::ErrorCode;

/// Runs neural-network models (ONNX, ORT, TFLite, GGUF, ncnn, PNNX, MNN, TNN, Tengine) on the GPU and the CPU.
///
/// Exit codes: 0 done, 1 a comparison missed its tolerance, 2 wrong use, 3 the model cannot be
/// loaded or run, 4 a file cannot be read or written.
#[derive(Parser)]
#[command(name = "kilim", version, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run a model once and print its outputs.
    #[command(after_help = commands::run::EXAMPLES)]
    Run(commands::run::Args),
    /// Show a model's inputs, outputs, placement with reasons, and memory, without running it.
    #[command(after_help = commands::inspect::EXAMPLES)]
    Inspect(commands::inspect::Args),
    /// Write a model of any format as ONNX, with smaller weights if wanted, and say what that costs.
    #[command(after_help = commands::convert::EXAMPLES)]
    Convert(commands::convert::Args),
    /// Go on from a prompt with a language model.
    #[cfg(feature = "text")]
    #[command(after_help = commands::generate::EXAMPLES)]
    Generate(commands::generate::Args),
    /// Write what is said in a sound file.
    #[cfg(feature = "speech")]
    #[command(after_help = commands::transcribe::EXAMPLES)]
    Transcribe(commands::transcribe::Args),
    /// Time a model: cold load, first run, steady state, and every node. Or the kernels of the CPU.
    #[command(after_help = commands::bench::EXAMPLES)]
    Bench(commands::bench::Args),
    /// Compare a model's outputs with stored references.
    #[command(after_help = commands::check::EXAMPLES)]
    Check(commands::check::Args),
    /// Run a model on two backends, node by node, and name the first node that differs.
    Verify(commands::verify::Args),
    /// Run the operator cases on a backend, a library's for instance, and say how it does.
    #[cfg(feature = "conform")]
    #[command(after_help = commands::conform::EXAMPLES)]
    Conform(commands::conform::Args),
    /// List the backends of this build and their devices, and measure their speed.
    Devices(commands::devices::Args),
}

/// Why a command ends with another exit code than 0.
pub enum Failure {
    /// A comparison missed its tolerance; everything has been printed.
    Missed,
    /// A comparison could not be made; everything has been printed.
    Printed(ErrorCode),
    /// The command line asks for something that cannot be.
    Usage(String),
    Kilim(kilim::Error),
}

impl From<kilim::Error> for Failure {
    fn from(error: kilim::Error) -> Self {
        Failure::Kilim(error)
    }
}

/// The exit code where a file cannot be read or written.
const NO_FILE: u8 = 4;

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Run(args) => pollster::block_on(commands::run::run(args)),
        Command::Inspect(args) => pollster::block_on(commands::inspect::run(args)),
        Command::Convert(args) => pollster::block_on(commands::convert::run(args)),
        #[cfg(feature = "text")]
        Command::Generate(args) => pollster::block_on(commands::generate::run(args)),
        #[cfg(feature = "speech")]
        Command::Transcribe(args) => pollster::block_on(commands::transcribe::run(args)),
        Command::Bench(args) => pollster::block_on(commands::bench::run(args)),
        Command::Check(args) => pollster::block_on(commands::check::run(args)),
        Command::Verify(args) => pollster::block_on(commands::verify::run(args)),
        #[cfg(feature = "conform")]
        Command::Conform(args) => pollster::block_on(commands::conform::run(args)),
        Command::Devices(args) => pollster::block_on(commands::devices::run(args)),
    };
    // No session is left that has one of them.
    #[cfg(feature = "plugins")]
    kilim::Runtime::shared().close_libraries();
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Missed) => ExitCode::from(1),
        Err(Failure::Usage(message)) => {
            eprintln!("error: {message}");
            ExitCode::from(2)
        }
        Err(Failure::Printed(code)) => exit_code(code),
        Err(Failure::Kilim(error)) => {
            eprintln!("error: {error}");
            exit_code(error.code())
        }
    }
}

fn exit_code(code: ErrorCode) -> ExitCode {
    ExitCode::from(match code {
        ErrorCode::Io => NO_FILE,
        _ => 3,
    })
}

#[cfg(test)]
mod tests {
    use super::Cli;
    use clap::Parser;
    use kilim_test_support::documents::blocks;

    /// Every line of a document that calls `kilim`.
    #[test]
    fn commands_in_documents_are_understood() {
        let mut read = 0;
        for block in blocks() {
            for words in block.commands() {
                if block.language != "sh" || words[0] != "kilim" {
                    continue;
                }
                read += 1;
                if let Err(error) = Cli::try_parse_from(&words) {
                    panic!("{}: {words:?}: {error}", block.place());
                }
            }
        }
        assert!(read > 15, "{read} commands");
    }
}
