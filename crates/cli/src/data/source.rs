//! What `--input NAME=SOURCE` gives a model.

use std::path::Path;

use kilim::formats::onnx::read_datum;
use kilim::{Datum, Error, ErrorCode, Fact, Form, Port, Tensor};

use super::{DataLimits, io_error, narrowed, npy, picture, random};
use crate::Failure;

/// The inputs of a model, on the command lines of `run`, `bench` and `verify`.
#[derive(clap::Args)]
#[command(next_help_heading = "Inputs")]
pub struct InputArgs {
    /// An input: NAME=FILE with .npy, .npz or .pb (a TensorProto), a picture (.png, .jpg …), or the word
    /// random; a sequence as .npz, or a .pb as the ONNX suite has them, which holds optional values
    /// and maps, too; the word none for an optional value. Without a name for a model with one
    /// input. Inputs that are not given are random, optional ones absent.
    #[arg(long = "input", short, value_name = "NAME=SOURCE")]
    inputs: Vec<String>,
    /// The seed of random inputs.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    limits: DataLimits,
}

impl InputArgs {
    pub fn new(inputs: Vec<String>, seed: u64) -> InputArgs {
        let limits = DataLimits::default();
        InputArgs {
            inputs,
            seed,
            limits,
        }
    }

    /// One value for each of `ports`.
    pub fn read<'p>(&self, ports: &'p [Port]) -> Result<Vec<(&'p str, Datum)>, Failure> {
        let mut sources = vec![None; ports.len()];
        for argument in &self.inputs {
            let (name, source) = match argument.split_once('=') {
                Some((name, source)) => (name, source),
                None if ports.len() == 1 => (ports[0].name.as_str(), argument.as_str()),
                None => {
                    return Err(Failure::Usage(format!(
                        "`--input {argument}` is not of the form NAME=FILE or NAME=random"
                    )));
                }
            };
            let Some(i) = ports.iter().position(|p| p.name == name) else {
                let names: Vec<_> = ports.iter().map(|p| format!("`{}`", p.name)).collect();
                return Err(Failure::Usage(format!(
                    "the model has no input `{name}`; it has {}",
                    names.join(", ")
                )));
            };
            if sources[i].replace(source).is_some() {
                return Err(Failure::Usage(format!("the input `{name}` is given twice")));
            }
        }
        let mut out = Vec::with_capacity(ports.len());
        for (i, (port, source)) in ports.iter().zip(sources).enumerate() {
            let fact = &port.fact;
            let datum = match source {
                None if fact.kind.optional => Datum::Absent,
                Some("none") if fact.kind.optional => Datum::Absent,
                None | Some("random") => made_up(fact, self.seed.wrapping_add(i as u64))
                    .map_err(|e| e.with_input(&port.name))?,
                Some(file) => read(fact, Path::new(file), &self.limits)?,
            };
            out.push((port.name.as_str(), datum));
        }
        Ok(out)
    }
}

fn made_up(fact: &Fact, seed: u64) -> kilim::Result<Datum> {
    match fact.kind.form {
        Form::Tensor => Ok(random::tensor(fact, seed)?.into()),
        Form::Sequence => Ok(Datum::Sequence(vec![random::tensor(fact, seed)?])),
        Form::Map | Form::MapSequence => Err(Error::new(
            ErrorCode::Input,
            "maps are not made up; give the input as a .pb file",
        )),
    }
}

fn read(fact: &Fact, file: &Path, limits: &DataLimits) -> Result<Datum, Failure> {
    let extension = file.extension().and_then(|e| e.to_str()).unwrap_or("");
    let stored = |tensor: Tensor| match fact.dtype {
        Some(dtype) if dtype.is_narrow() => {
            narrowed(&tensor, dtype).map_err(|e| e.with_input(file.display()))
        }
        _ => Ok(tensor),
    };
    Ok(
        match (extension.to_ascii_lowercase().as_str(), fact.kind.form) {
            ("pb", _) => {
                let bytes = std::fs::read(file).map_err(|e| io_error(file, e))?;
                let (_, datum) =
                    read_datum(&bytes, fact.kind).map_err(|e| e.with_input(file.display()))?;
                datum
            }
            ("npy", Form::Tensor) => stored(npy::read(file, limits)?)?.into(),
            ("npz", Form::Tensor) => stored(npy::read_only(file, limits)?)?.into(),
            ("npz", Form::Sequence) => {
                let names = npy::names(file)?.into_iter();
                let tensors = names.map(|name| stored(npy::read_named(file, &name, limits)?));
                Datum::Sequence(tensors.collect::<kilim::Result<_>>()?)
            }
            (_, Form::Tensor) => picture::tensor(fact, file, limits)?.into(),
            _ => {
                return Err(Failure::Usage(format!(
                    "`{}` cannot hold a {}; give a .pb file, or .npz for a sequence",
                    file.display(),
                    fact.kind
                )));
            }
        },
    )
}

/// The tensors that a value is made of, with names that say where in it they stand.
pub fn parts(name: &str, datum: &Datum) -> Vec<(String, Tensor)> {
    let map = |name: &str, map: &kilim::Map| {
        [
            (format!("{name}.keys"), map.keys.clone()),
            (format!("{name}.values"), map.values.clone()),
        ]
    };
    match datum {
        Datum::Tensor(tensor) => vec![(name.to_string(), tensor.clone())],
        Datum::Sequence(list) => {
            let numbered = list.iter().enumerate();
            numbered
                .map(|(i, tensor)| (format!("{name}.{i}"), tensor.clone()))
                .collect()
        }
        Datum::Map(one) => map(name, one).to_vec(),
        Datum::MapSequence(list) => {
            let numbered = list.iter().enumerate();
            numbered
                .flat_map(|(i, one)| map(&format!("{name}.{i}"), one))
                .collect()
        }
        Datum::Absent | Datum::Device(_) => Vec::new(),
    }
}
