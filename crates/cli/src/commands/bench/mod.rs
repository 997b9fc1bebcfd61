//! `kilim bench`: times a model, or the kernels of the CPU.

mod against;
#[cfg(feature = "cpu")]
mod kernels;
mod model;

use clap::{ArgMatches, Command, FromArgMatches};

pub use self::model::print_times;
use crate::Failure;

pub const EXAMPLES: &str = "\
Examples:
  kilim bench model.onnx --backends cpu --runs 30
  kilim bench model.tflite --against model.onnx --threads 1
  kilim bench --kernels --threads 1
  kilim bench --kernels=Conv --check";

/// What is timed.
pub enum Args {
    Model(Box<model::Args>),
    #[cfg(feature = "cpu")]
    Kernels(kernels::KernelArgs),
}

impl clap::Args for Args {
    fn augment_args(command: Command) -> Command {
        let command = model::Args::augment_args(command);
        #[cfg(feature = "cpu")]
        let command = kernels::augment(command);
        command
    }

    fn augment_args_for_update(command: Command) -> Command {
        Args::augment_args(command)
    }
}

impl FromArgMatches for Args {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Args, clap::Error> {
        #[cfg(feature = "cpu")]
        if let Some(args) = kernels::KernelArgs::wanted(matches)? {
            return Ok(Args::Kernels(args));
        }
        let model = model::Args::from_arg_matches(matches)?;
        Ok(Args::Model(Box::new(model)))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Args::from_arg_matches(matches)?;
        Ok(())
    }
}

pub async fn run(args: Args) -> Result<(), Failure> {
    match args {
        Args::Model(args) => model::run(*args).await,
        #[cfg(feature = "cpu")]
        Args::Kernels(args) => kernels::run(&args),
    }
}
