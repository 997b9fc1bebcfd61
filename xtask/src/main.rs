//! Every job of the repository has one name: `cargo xtask setup | build | site | demo | test | fuzz | hostile | bench`.

mod arm;
mod bench;
mod build;
mod demo;
mod fuzz;
mod glue;
mod hostile;
mod names;
mod parts;
mod relaxed;
mod serve;
mod setup;
mod sh;
mod site;
mod test;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

#[derive(Parser)]
#[command(
    name = "cargo xtask",
    about = "Kilim's jobs, the same on a laptop and in CI"
)]
struct Cli {
    #[command(subcommand)]
    job: Job,
}

#[derive(Subcommand)]
enum Job {
    /// Install or find what the other jobs need
    Setup,
    /// Build the web binaries, the npm package and the web app
    Build(build::Args),
    /// Make the documentation site, for any server of files
    Site(site::Args),
    /// Show the embedded model answering, in the web page or, headless, four ways in the terminal
    Demo(demo::Args),
    /// Run every check of the repository
    Test(test::Args),
    /// Run random models against float64 references
    Fuzz(fuzz::Args),
    /// Give thousands of hostile files to the command line
    Hostile(hostile::Args),
    /// Time Kilim beside other engines, in one browser
    Bench(bench::Args),
}

fn main() -> ExitCode {
    let result = match Cli::parse().job {
        Job::Setup => setup::all(),
        Job::Build(args) => build::run(&args),
        Job::Site(args) => site::run(&args),
        Job::Demo(args) => demo::run(&args),
        Job::Test(args) => test::run(&args),
        Job::Fuzz(args) => fuzz::run(&args),
        Job::Hostile(args) => hostile::run(&args),
        Job::Bench(args) => bench::run(&args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Cli;
    use clap::Parser;
    use kilim_test_support::documents::blocks;

    /// Every line of a document that calls `cargo xtask`.
    #[test]
    fn commands_in_documents_are_understood() {
        let mut read = 0;
        for block in blocks() {
            for words in block.commands() {
                let call = words.iter().position(|word| word == "xtask");
                let Some(call) = call.filter(|_| block.language == "sh") else {
                    continue;
                };
                read += 1;
                if let Err(error) = Cli::try_parse_from(&words[call..]) {
                    panic!("{}: {words:?}: {error}", block.place());
                }
            }
        }
        assert!(read > 8, "{read} commands");
    }
}
