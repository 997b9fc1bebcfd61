//! A model of speech: samples go in, words come out.

use kilim_core::{DType, Datum, Error, ErrorCode, Keep, Port, Result, RunOptions, Session, Tensor};

use crate::settings::Settings;
use crate::writer::{Heard, Wanted, Writer};

/// An encoder and a decoder, and what both know of a window.
pub struct Listener {
    encoder: Session,
    decoding: Session,
    writer: Writer,
}

impl Listener {
    /// `encoder` is a session of what [`Settings::listening`] made, `decoding` one of the decoder.
    ///
    /// # Errors
    /// Those of [`Writer::new`]; `Unsupported` where the encoder has no output.
    pub fn new(encoder: Session, decoding: Session, settings: Settings) -> Result<Listener> {
        let writer = Writer::new(&decoding, settings)?;
        if encoder.outputs().is_empty() {
            let message = "an encoder without an output";
            return Err(Error::new(ErrorCode::Unsupported, message));
        }
        Ok(Listener {
            encoder,
            decoding,
            writer,
        })
    }

    /// What the folder says of the model.
    pub fn settings(&self) -> &Settings {
        self.writer.settings()
    }

    /// Samples that the model hears at once.
    pub fn window(&self) -> usize {
        self.settings().window
    }

    /// Listens to a window: samples of one channel, from −1 to 1, so many a second as the model takes, at most [`Listener::window`]
    /// of them.
    ///
    /// # Errors
    /// Those of [`Session::run`]; `InvalidValue` without samples, or with too many.
    pub async fn hear(&mut self, samples: &[f32], options: &RunOptions) -> Result<()> {
        if samples.is_empty() || samples.len() > self.window() {
            let e = Error::new(ErrorCode::InvalidValue, "a window of an unusual length");
            let e = e.with_expected(format!("1 to {} samples", self.window()));
            return Err(e.with_got(samples.len()));
        }
        let inputs = self.encoder.inputs().iter();
        let inputs = inputs.map(|port| Ok((port.name.clone(), self.input(port, samples)?)));
        let inputs = inputs.collect::<Result<Vec<(String, Datum)>>>()?;
        let inputs = inputs.iter().map(|(name, datum)| (&**name, datum.clone()));
        let made = self.encoder.outputs()[0].name.clone();
        // What the encoder made stays where it is computed.
        let options = RunOptions {
            keep: Keep::new([&made]),
            ..options.clone()
        };
        let outputs = self.encoder.run_owned(inputs.collect(), &options).await?;
        let found = outputs.into_iter().find(|(name, _)| *name == made);
        let (_, source) =
            found.ok_or_else(|| Error::new(ErrorCode::State, "a run gave no output"))?;
        self.writer.attend(source, samples.len())
    }

    /// What an input of the encoder is given.
    fn input(&self, port: &Port, samples: &[f32]) -> Result<Datum> {
        let shape = port.fact.shape.as_ref();
        let fixed = shape.and_then(|shape| shape.0.get(1)?.known());
        let length = fixed.unwrap_or(samples.len());
        if samples.len() > length {
            let message = "the encoder hears less than a window at once";
            let e = Error::new(ErrorCode::Unsupported, message).with_input(&port.name);
            return Err(e.with_expected(samples.len()).with_got(length));
        }
        let dtype = port.fact.dtype.unwrap_or(DType::F32);
        // Silence behind the samples, which a mask does not count.
        let mut tensor = Tensor::zeros(dtype, &[1, length])?;
        match dtype {
            DType::F32 => tensor.make_mut::<f32>()?[..samples.len()].copy_from_slice(samples),
            DType::I64 => tensor.make_mut::<i64>()?[..samples.len()].fill(1),
            other => {
                let e = Error::new(ErrorCode::Unsupported, "an unusual input of an encoder");
                let e = e.with_input(&port.name).with_got(other);
                return Err(e.with_expected("float32 or int64"));
            }
        }
        Ok(tensor.into())
    }

    /// The words of the window that was heard last, the most likely one always.
    ///
    /// # Errors
    /// Those of [`Writer::words`].
    pub async fn words(&mut self, wanted: &Wanted, options: &RunOptions) -> Result<Heard> {
        self.writer.words(&mut self.decoding, wanted, options).await
    }
}
