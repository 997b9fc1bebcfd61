//! The inputs that inputs.py has drawn.

use anyhow::{Context, Result, bail};
use npyz::{DType, NpyFile, TypeChar};
use std::fs::File;
use std::io::BufReader;

pub struct Input {
    pub name: String,
    pub shape: Vec<usize>,
    pub data: Data,
}

pub enum Data {
    F32(Vec<f32>),
    I64(Vec<i64>),
}

impl Input {
    pub fn read_all(list: &str) -> Result<Vec<Input>> {
        let list: serde_json::Value = serde_json::from_str(list)?;
        let list = list.as_array().context("INPUTS is no list")?;
        let text = |item: &serde_json::Value, key: &str| -> Result<String> {
            Ok(item[key].as_str().context("no text")?.to_owned())
        };
        let read = |item| Self::read(text(item, "name")?, &text(item, "file")?);
        list.iter().map(read).collect()
    }

    fn read(name: String, file: &str) -> Result<Input> {
        let npy = NpyFile::new(BufReader::new(File::open(file)?))?;
        let shape = npy.shape().iter().map(|&d| d as usize).collect();
        let DType::Plain(kind) = npy.dtype() else {
            bail!("{file} holds records")
        };
        let data = match (kind.type_char(), kind.size_field()) {
            (TypeChar::Float, 4) => Data::F32(npy.into_vec()?),
            (TypeChar::Int, 8) => Data::I64(npy.into_vec()?),
            _ => bail!("inputs of {kind} are not passed on"),
        };
        Ok(Input { name, shape, data })
    }
}
