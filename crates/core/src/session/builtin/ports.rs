//! The tensors that take the user's inputs and hand out results. Between them and the backends
//! there is always a copy or a share, so that no backend's memory is the user's.

use std::collections::{HashMap, HashSet};

use crate::builtin::{Port, PortLayouts, layouts};
use crate::datum::{Datum, Kind};
use crate::dtype::DType;
use crate::error::{Error, ErrorCode, Result, unsupported};
use crate::fact::{Fact, TensorSpec};
use crate::session::{Handle, Keep};
use crate::tensor::Tensor;

/// The inputs and outputs of a session.
#[derive(Clone)]
pub(crate) struct Ports {
    pub inputs: Vec<Port>,
    pub outputs: Vec<Port>,
}

impl Ports {
    /// `Input` where a layout is given for something that is neither an input nor an output.
    pub fn check_layouts(&self, layouts: &PortLayouts) -> Result<()> {
        let ports = || self.inputs.iter().chain(&self.outputs);
        let known: HashSet<&str> = ports().map(|p| p.name.as_str()).collect();
        let Some(name) = layouts.keys().find(|name| !known.contains(name.as_str())) else {
            return Ok(());
        };
        let names: Vec<_> = ports().map(|p| p.name.as_str()).collect();
        let message = format!("the model has no input or output `{name}`, which has a layout");
        Err(Error::new(ErrorCode::Input, message).with_expected(names.join(", ")))
    }

    /// The user's data, one for each input. Nothing is copied: backends in host memory take the
    /// bytes, others are written from them.
    ///
    /// # Errors
    /// `Input` for an input that is missing, unknown or given twice, `DType` and `Shape` for one that
    /// does not fit what the model declares.
    pub fn accept(&self, given: Vec<(&str, Datum)>, layouts: &PortLayouts) -> Result<Vec<Handle>> {
        let inputs: HashSet<&str> = self.inputs.iter().map(|p| p.name.as_str()).collect();
        let mut data: HashMap<&str, Datum> = HashMap::with_capacity(given.len());
        for (name, datum) in given {
            let known = inputs.contains(name);
            if !known || data.insert(name, datum).is_some() {
                let names: Vec<_> = self.inputs.iter().map(|p| p.name.as_str()).collect();
                let what = if known {
                    "is given twice"
                } else {
                    "is not one of the model's"
                };
                return Err(
                    Error::new(ErrorCode::Input, format!("the input `{name}` {what}"))
                        .with_input(name)
                        .with_expected(names.join(", ")),
                );
            }
        }
        let mut feeds = Vec::with_capacity(self.inputs.len());
        for port in &self.inputs {
            let Some(datum) = data.remove(port.name.as_str()) else {
                if port.fact.kind.optional {
                    feeds.push(Handle::Absent);
                    continue;
                }
                return Err(Error::new(
                    ErrorCode::Input,
                    format!("the input `{}` is missing", port.name),
                )
                .with_input(&port.name)
                .with_expected(&port.fact));
            };
            if let (true, Datum::Device(_)) = (layouts.contains_key(&port.name), &datum) {
                return Err(in_layout("input", &port.name).with_input(&port.name));
            }
            let datum = layouts::accept(layouts, port, datum)?;
            check_form(port, &datum)?;
            let tensors = match &datum {
                Datum::Tensor(tensor) => std::slice::from_ref(tensor),
                Datum::Sequence(tensors) => tensors,
                _ => &[],
            };
            for tensor in tensors {
                check_declared("input", port, tensor.dtype(), tensor.shape())?;
            }
            if let Datum::Device(tensor) = &datum {
                check_declared("input", port, tensor.dtype, &tensor.shape)?;
            }
            feeds.push(datum.into());
        }
        Ok(feeds)
    }

    /// Which outputs are kept where they were computed.
    ///
    /// # Errors
    /// `Input` for a pattern that fits no output; `DType` where an output is, or may be, no tensor; `Unsupported`
    /// where the user has it in another layout than the model; `DType` and `Shape` where it goes into memory for another tensor.
    pub fn kept(&self, keep: &Keep, layouts: &PortLayouts) -> Result<Vec<bool>> {
        if let Some(pattern) = keep.idle(self.outputs.iter().map(|p| &*p.name)) {
            return Err(self.no_output(pattern));
        }
        let kept = self.outputs.iter().map(|port| {
            if !keep.has(&port.name) {
                return Ok(false);
            }
            if !port.fact.kind.is_tensor() {
                let message = format!("the output `{}` cannot be kept", port.name);
                let e = Error::new(ErrorCode::DType, message);
                return Err(e.with_expected("a tensor").with_got(port.fact.kind));
            }
            #[cfg(not(target_arch = "wasm32"))]
            for (_, memory) in keep.memory().iter().filter(|(of, _)| *of == port.name) {
                check_declared("output", port, memory.dtype, &memory.shape)?;
            }
            match layouts.contains_key(&port.name) {
                true => Err(in_layout("output", &port.name)),
                false => Ok(true),
            }
        });
        kept.collect()
    }

    /// Which outputs a run gives: those that fit `wanted`, and those that are kept. `None` where that is all of them.
    ///
    /// # Errors
    /// `Input` for a pattern that fits no output.
    pub fn asked(&self, wanted: Option<&Keep>, kept: &[bool]) -> Result<Option<Vec<bool>>> {
        let Some(wanted) = wanted else {
            return Ok(None);
        };
        if let Some(pattern) = wanted.idle(self.outputs.iter().map(|p| &*p.name)) {
            return Err(self.no_output(pattern));
        }
        let ports = self.outputs.iter().zip(kept);
        let asked: Vec<bool> = ports
            .map(|(p, kept)| *kept || wanted.has(&p.name))
            .collect();
        Ok(Some(asked).filter(|asked| asked.contains(&false)))
    }

    /// What a run gave as the user wants it: what is kept where it is, all else on the host, and nothing that was not `asked` for.
    ///
    /// # Errors
    /// What reading says.
    pub async fn hand_out(
        &self,
        results: Vec<Handle>,
        kept: &[bool],
        asked: Option<&[bool]>,
        layouts: &PortLayouts,
    ) -> Result<Vec<(String, Datum)>> {
        let mut out = Vec::with_capacity(results.len());
        let results = self.outputs.iter().zip(results).zip(kept).enumerate();
        for (i, ((port, handle), kept)) in results {
            if asked.is_some_and(|asked| !asked[i]) {
                continue;
            }
            let datum = match kept {
                true => handle.into_kept()?.into(),
                false => layouts::hand_out(layouts, port, handle.into_datum().await?)?,
            };
            out.push((port.name.clone(), datum));
        }
        Ok(out)
    }

    fn no_output(&self, name: &str) -> Error {
        let names: Vec<_> = self.outputs.iter().map(|p| p.name.as_str()).collect();
        let message = format!("the model has no output `{name}`");
        Error::new(ErrorCode::Input, message).with_expected(names.join(", "))
    }

    /// `Input` where a buffer is named for something that is no output.
    pub fn check_names(&self, buffers: &[(&str, &mut [u8])]) -> Result<()> {
        let known: HashSet<&str> = self.outputs.iter().map(|p| p.name.as_str()).collect();
        match buffers.iter().find(|(name, _)| !known.contains(name)) {
            Some((name, _)) => Err(self.no_output(name)),
            None => Ok(()),
        }
    }

    /// Copies outputs into the user's buffers, or into none.
    ///
    /// # Errors
    /// `DType` for an output that is no tensor of numbers, `Limit` where a buffer is too short.
    pub fn fill(
        &self,
        outputs: &[(String, Datum)],
        buffers: &mut [(&str, &mut [u8])],
    ) -> Result<Vec<TensorSpec>> {
        let mut tensors = Vec::with_capacity(buffers.len());
        let mut data: HashMap<&str, &Datum> = HashMap::with_capacity(outputs.len());
        for (name, datum) in outputs {
            data.entry(name).or_insert(datum);
        }
        for (name, buffer) in buffers.iter() {
            let tensor = match data.get(name) {
                Some(Datum::Tensor(tensor)) if tensor.dtype() != DType::String => tensor,
                _ => {
                    let message = format!("the output `{name}` is no tensor of numbers");
                    return Err(Error::new(ErrorCode::DType, message));
                }
            };
            let bytes = tensor.byte_len();
            if buffer.len() < bytes {
                let message = format!("the buffer for the output `{name}` is too short");
                return Err(Error::new(ErrorCode::Limit, message)
                    .with_expected(format!("{bytes} bytes"))
                    .with_got(buffer.len()));
            }
            tensors.push(tensor);
        }
        for (tensor, (_, buffer)) in tensors.iter().zip(buffers.iter_mut()) {
            let bytes = tensor.read()?;
            buffer[..bytes.len()].copy_from_slice(bytes);
        }
        let spec = |t: &Tensor| TensorSpec::new(t.dtype(), t.shape());
        Ok(tensors.into_iter().map(spec).collect())
    }
}

fn in_layout(what: &str, name: &str) -> Error {
    unsupported(format!(
        "a kept tensor for the {what} `{name}`, which has a layout"
    ))
}

/// `DType` where an input is not of the form that the model declares.
fn check_form(port: &Port, datum: &Datum) -> Result<()> {
    let kind = port.fact.kind;
    let fits = match datum.form() {
        Some(form) => form == kind.form,
        None => kind.optional,
    };
    if fits {
        return Ok(());
    }
    let got = datum
        .form()
        .map_or("nothing".to_string(), |form| Kind::from(form).to_string());
    Err(Error::new(
        ErrorCode::DType,
        format!("the input `{}` has the wrong form", port.name),
    )
    .with_input(&port.name)
    .with_expected(kind)
    .with_got(got))
}

/// Exporters give one name to dimensions that differ, so a symbol does not bind: where two of them
/// must agree, an operator says so.
fn check_declared(what: &str, port: &Port, dtype: DType, shape: &[usize]) -> Result<()> {
    let wrong = |code, message: String| {
        Err(Error::new(code, message)
            .with_input(&port.name)
            .with_expected(&port.fact)
            .with_got(Fact::fixed(dtype, shape)))
    };
    if port.fact.dtype.is_some_and(|d| d != dtype) {
        return wrong(
            ErrorCode::DType,
            format!("the {what} `{}` has the wrong element type", port.name),
        );
    }
    let Some(declared) = &port.fact.shape else {
        return Ok(());
    };
    let mut dims = declared.0.iter().zip(shape);
    if declared.rank() != shape.len() || !dims.all(|(d, &n)| d.known().is_none_or(|m| m == n)) {
        return wrong(
            ErrorCode::Shape,
            format!("the {what} `{}` has the wrong shape", port.name),
        );
    }
    Ok(())
}
