//! Networks in text (`interpreter/tnn/model_interpreter.cc`): lines in quotes that end in commas. The first has the version, the second
//! the inputs, the third the names of all blobs, the fourth the outputs, the fifth the number of layers; then a layer each.

use kilim_core::Limits;
use kilim_core::dtype::DType;
use kilim_core::error::{Error, ErrorCode, Result};

use super::invalid;
use super::model::element_type;

/// The versions (`interpreter/tnn/objseri.h`): the second gives inputs their rank and element type.
const WITHOUT_TYPES: u32 = 0xFABC_0002;
const WITH_TYPES: u32 = 0xFABC_0004;

/// What all versions have in common, where they are shifted by 16 bits.
const FAMILY: u32 = WITH_TYPES >> 16;

/// The lines in front of the layers.
const HEAD: usize = 5;

/// A layer. What stands behind its blobs depends on its kind.
pub struct LayerInfo {
    pub kind: String,
    pub name: String,
    pub inputs: Vec<String>,
    pub outputs: Vec<String>,
    pub words: Vec<String>,
}

/// An input of the network.
pub struct InputInfo {
    pub name: String,
    pub dims: Vec<usize>,
    pub dtype: DType,
}

/// A whole network.
pub struct Network {
    pub inputs: Vec<InputInfo>,
    pub outputs: Vec<String>,
    pub layers: Vec<LayerInfo>,
}

/// The first line's fourth word, where a file begins like a network.
fn version(begin: &str) -> Option<u32> {
    let begin = begin.trim_start_matches('\u{feff}').trim_start();
    let line = begin.strip_prefix('"')?.split([',', '"']).next()?;
    let mut words = line.split_ascii_whitespace();
    let mut number = || words.next()?.parse().ok();
    let [_, _, _, version]: [u32; 4] = [number()?, number()?, number()?, number()?];
    (version >> 16 == FAMILY).then_some(version)
}

/// Whether a file begins like a network, of whatever version.
pub fn probe(bytes: &[u8]) -> bool {
    version(&String::from_utf8_lossy(&bytes[..bytes.len().min(256)])).is_some()
}

/// Reads a network.
///
/// # Errors
/// `InvalidModel` where the text is garbled, `Unsupported` where it is of another version, `Limit` where it has too many layers.
pub fn read(bytes: &[u8], limits: &Limits) -> Result<Network> {
    let text = std::str::from_utf8(bytes).map_err(|_| invalid("the file is no text"))?;
    let version = version(text).ok_or_else(|| invalid("the first line has no version"))?;
    let with_types = match version {
        WITHOUT_TYPES => false,
        WITH_TYPES => true,
        other => {
            let known = format!("{WITHOUT_TYPES} or {WITH_TYPES}");
            let message = "a TNN network of another version";
            return Err(Error::new(ErrorCode::Unsupported, message)
                .with_expected(known)
                .with_got(other));
        }
    };
    let text = text.trim_start_matches('\u{feff}').replace('"', "");
    let lines: Vec<&str> = text.split(',').map(str::trim).collect();
    let [_, inputs, _, outputs, _, layers @ ..] = &lines[..] else {
        return Err(invalid("the file ends too early").with_expected(format!("{HEAD} lines")));
    };
    let outputs: Vec<_> = words(outputs).collect();
    if outputs.is_empty() {
        return Err(invalid("the network has no outputs"));
    }
    let lines = layers.iter().filter(|line| !line.is_empty());
    let mut layers = Vec::new();
    for line in lines {
        limits.check_nodes(layers.len() + 1)?;
        layers.push(layer(line)?);
    }
    let inputs = inputs.split(':').map(|text| input(text, with_types));
    Ok(Network {
        inputs: inputs.collect::<Result<_>>()?,
        outputs,
        layers,
    })
}

fn words(line: &str) -> impl Iterator<Item = String> + '_ {
    line.split_ascii_whitespace().map(str::to_string)
}

fn count(word: Option<&str>) -> Result<usize> {
    let word = word.ok_or_else(|| invalid("a line ends too early"))?;
    let number = word.parse();
    number.map_err(|_| invalid("a number is missing").with_got(word))
}

/// `name 1 3 224 224`, with types `name 4 1 3 224 224 0`.
fn input(text: &str, with_types: bool) -> Result<InputInfo> {
    let mut words = text.split_ascii_whitespace();
    let name = words
        .next()
        .ok_or_else(|| invalid("an input has no name"))?
        .to_string();
    let (dims, dtype) = if with_types {
        let rank = count(words.next())?;
        let dims: Vec<_> = words.by_ref().take(rank).map(|w| count(Some(w))).collect();
        if dims.len() < rank {
            return Err(invalid("an input has fewer dimensions than it says").with_input(name));
        }
        let number = words.next().map_or(Ok(0), |w| count(Some(w)))?;
        (dims, element_type(number as i64)?)
    } else {
        (words.map(|w| count(Some(w))).collect(), DType::F32)
    };
    let dims: Vec<usize> = dims.into_iter().collect::<Result<_>>()?;
    if dims.is_empty() || dims.contains(&0) {
        return Err(invalid("an input has no size").with_input(name));
    }
    Ok(InputInfo { name, dims, dtype })
}

/// `Kind name inputs outputs`, the blobs, and what is left for the kind.
fn layer(line: &str) -> Result<LayerInfo> {
    let mut words = line.split_ascii_whitespace();
    let (Some(kind), Some(name)) = (words.next(), words.next()) else {
        return Err(invalid("a layer has no name").with_got(line));
    };
    let mut read = || -> Result<LayerInfo> {
        let (inputs, outputs) = (count(words.next())?, count(words.next())?);
        let mut blobs = |n: usize| -> Result<Vec<String>> {
            let blobs: Vec<_> = words.by_ref().take(n).map(str::to_string).collect();
            match blobs.len() == n {
                true => Ok(blobs),
                false => Err(invalid("the line of a layer ends within its blobs")),
            }
        };
        Ok(LayerInfo {
            kind: kind.to_string(),
            name: name.to_string(),
            inputs: blobs(inputs)?,
            outputs: blobs(outputs)?,
            words: words.by_ref().map(str::to_string).collect(),
        })
    };
    read().map_err(|error| error.at(name, kind))
}
