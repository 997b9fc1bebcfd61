//! Cases given on the command line: ONNX `test_data_set_N` folders and `.npz` pairs.

use std::path::{Path, PathBuf};

use kilim::{DType, Datum, Error, ErrorCode, Port, Result};

use super::verdict::Wanted;
use crate::data::{DataLimits, io_error, npy};

/// Inputs and references of one case, by name.
pub struct Case {
    pub name: String,
    pub inputs: Vec<(String, Datum)>,
    pub outputs: Vec<Wanted>,
}

/// Whether this can be a case at all.
pub fn is_case(case: &str) -> bool {
    Path::new(case).is_dir() || case.contains(':')
}

/// Reads a case: a folder of `input_N.pb` and `output_N.pb`; or `INPUTS:REFERENCES`, two `.npz`
/// files by name, or `.npy` files for models with one input and one output.
pub fn read(case: &str, inputs: &[Port], outputs: &[Port], limits: &DataLimits) -> Result<Case> {
    let folder = Path::new(case);
    if folder.is_dir() {
        return Ok(Case {
            name: case.to_string(),
            inputs: protobufs(folder, "input", inputs)?,
            outputs: protobufs(folder, "output", outputs)?
                .into_iter()
                .map(|(name, datum)| (name, datum, None))
                .collect(),
        });
    }
    let (given, want) = case.split_once(':').unwrap_or((case, ""));
    Ok(Case {
        name: case.to_string(),
        inputs: arrays(Path::new(given), inputs, limits)?,
        outputs: arrays(Path::new(want), outputs, limits)?
            .into_iter()
            .map(|(name, datum)| {
                let stored_as = widened(&name, &datum, outputs);
                (name, datum, stored_as)
            })
            .collect(),
    })
}

/// The element type of an output whose reference is stored in half of its precision, to take less room.
fn widened(name: &str, datum: &Datum, ports: &[Port]) -> Option<String> {
    let Datum::Tensor(stored) = datum else {
        return None;
    };
    let own = ports.iter().find(|p| p.name == name)?.fact.dtype?;
    let wider = stored.dtype() == DType::F16 && matches!(own, DType::F32 | DType::F64);
    wider.then(|| own.name().to_string())
}

fn protobufs(folder: &Path, kind: &str, ports: &[Port]) -> Result<Vec<(String, Datum)>> {
    let mut out = Vec::new();
    for (i, port) in ports.iter().enumerate() {
        let file: PathBuf = folder.join(format!("{kind}_{i}.pb"));
        if !file.exists() {
            break;
        }
        let bytes = std::fs::read(&file).map_err(|e| io_error(&file, e))?;
        let (name, datum) = kilim::formats::onnx::read_datum(&bytes, port.fact.kind)?;
        let known = ports.iter().any(|p| p.name == name);
        out.push((if known { name } else { port.name.clone() }, datum));
    }
    Ok(out)
}

fn arrays(file: &Path, ports: &[Port], limits: &DataLimits) -> Result<Vec<(String, Datum)>> {
    if file.extension().is_some_and(|e| e == "npz") {
        let names = npy::names(file)?;
        return names
            .into_iter()
            .enumerate()
            .map(|(i, name)| {
                let tensor = npy::read_named(file, &name, limits)?;
                let known = ports.iter().any(|p| p.name == name);
                let by_order = ports.get(i).map_or(name.clone(), |p| p.name.clone());
                Ok((if known { name } else { by_order }, tensor.into()))
            })
            .collect();
    }
    match ports {
        [port] => Ok(vec![(port.name.clone(), npy::read(file, limits)?.into())]),
        _ => Err(Error::new(
            ErrorCode::Input,
            "a .npy file can only stand for a single input or output; use .npz",
        )),
    }
}
