//! The inputs that a model is measured on.

use std::path::Path;

use kilim::{Datum, Port};

use crate::Failure;
use crate::data::source::InputArgs;
use crate::data::{DataLimits, io_error, npy};

/// A value for each input.
pub type Sample = Vec<(String, Datum)>;

/// Samples of a folder, or one that the command line gives or that is made up.
#[derive(Default)]
pub struct Samples {
    samples: Vec<Sample>,
    folder: bool,
}

impl Samples {
    /// # Errors
    /// What reading the files says, and a folder without any.
    pub fn read(
        folder: Option<&Path>,
        inputs: &InputArgs,
        ports: &[Port],
    ) -> Result<Samples, Failure> {
        let Some(folder) = folder else {
            let sample = inputs.read(ports)?.into_iter();
            let sample = sample.map(|(name, datum)| (name.to_string(), datum));
            return Ok(Samples {
                samples: vec![sample.collect()],
                folder: false,
            });
        };
        let entries = std::fs::read_dir(folder).map_err(|e| io_error(folder, e))?;
        let mut files = Vec::new();
        for entry in entries {
            let path = entry.map_err(|e| io_error(folder, e))?.path();
            if path.is_file() {
                files.push(path);
            }
        }
        files.sort();
        if files.is_empty() {
            return Err(Failure::Usage(format!(
                "`{}` holds no files",
                folder.display()
            )));
        }
        let samples = files.iter().map(|file| read(file, ports));
        Ok(Samples {
            samples: samples.collect::<Result<_, Failure>>()?,
            folder: true,
        })
    }

    pub fn all(&self) -> &[Sample] {
        &self.samples
    }

    /// Whether the user brought a folder of them.
    pub fn are_given(&self) -> bool {
        self.folder
    }
}

/// The sample of a file.
fn read(file: &Path, ports: &[Port]) -> Result<Sample, Failure> {
    let limits = DataLimits::default();
    if let [port] = ports {
        let given = vec![format!("{}={}", port.name, file.display())];
        let value = InputArgs::new(given, 0).read(ports)?.into_iter();
        return Ok(value
            .map(|(name, datum)| (name.to_string(), datum))
            .collect());
    }
    let held = npy::names(file)?;
    let sample = ports.iter().map(|port| {
        if !held.contains(&port.name) {
            let message = format!("`{}` has no array `{}`", file.display(), port.name);
            return Err(Failure::Usage(message));
        }
        let tensor = npy::read_named(file, &port.name, &limits)?;
        Ok((port.name.clone(), tensor.into()))
    });
    sample.collect()
}
