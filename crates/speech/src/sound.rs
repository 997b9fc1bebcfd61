//! Sound files, and sound at other rates.

use std::path::Path;

use hound::{SampleFormat, WavReader};
use kilim_core::{Error, ErrorCode, Result};
use rubato::audioadapter_buffers::direct::InterleavedSlice;
use rubato::{Fft, FixedSync, Resampler};

use crate::settings::RATES;

/// Samples that the resampler takes at once; it chooses a number near it.
const CHUNK: usize = 4096;

/// Sound of one channel.
#[derive(Clone, Debug, PartialEq)]
pub struct Sound {
    /// Samples a second.
    pub rate: u32,
    /// Numbers from −1 to 1.
    pub samples: Vec<f32>,
}

impl Sound {
    /// How long it is.
    pub fn seconds(&self) -> f64 {
        self.samples.len() as f64 / f64::from(self.rate)
    }

    /// The sound at another rate.
    ///
    /// # Errors
    /// `Unsupported` for rates below 1,000 or above 768,000 samples a second.
    pub fn at(self, rate: u32) -> Result<Sound> {
        for rate in [self.rate, rate] {
            if !RATES.contains(&(rate as usize)) {
                let message = "sound of an unusual rate";
                let e = Error::new(ErrorCode::Unsupported, message).with_got(rate);
                let expected = format!("{} to {} samples a second", RATES.start(), RATES.end());
                return Err(e.with_expected(expected));
            }
        }
        if self.rate == rate || self.samples.is_empty() {
            return Ok(Sound { rate, ..self });
        }
        let failed = |e: &dyn std::fmt::Display| {
            let message = format!("the sound cannot be brought to {rate} samples a second: {e}");
            Error::new(ErrorCode::InvalidValue, message)
        };
        let (from, to) = (self.rate as usize, rate as usize);
        let resampler = Fft::<f32>::new(from, to, CHUNK, 1, FixedSync::Both);
        let mut resampler = resampler.map_err(|e| failed(&e))?;
        let length = self.samples.len();
        let input = InterleavedSlice::new(&self.samples, 1, length).map_err(|e| failed(&e))?;
        let samples = resampler.process_all(&input, length, None);
        let samples = samples.map_err(|e| failed(&e))?.take_data();
        Ok(Sound { rate, samples })
    }
}

/// Reads a WAV file; channels are averaged.
///
/// # Errors
/// `Io` where it cannot be read; `Unsupported` where it is no WAV file, or one whose samples are compressed.
pub fn read_sound(path: &Path) -> Result<Sound> {
    let failed = |e: hound::Error| unread(path, &e);
    let mut file = WavReader::open(path).map_err(failed)?;
    let spec = file.spec();
    let samples: Vec<f32> = match spec.sample_format {
        SampleFormat::Float => file
            .samples::<f32>()
            .collect::<std::result::Result<_, _>>()
            .map_err(failed)?,
        SampleFormat::Int => {
            // The most negative number stands for −1.
            let scale = f64::exp2(1.0 - f64::from(spec.bits_per_sample));
            let scaled = |sample: i32| (f64::from(sample) * scale) as f32;
            let samples = file.samples::<i32>().map(|sample| sample.map(scaled));
            samples
                .collect::<std::result::Result<_, _>>()
                .map_err(failed)?
        }
    };
    let channels = usize::from(spec.channels).max(1);
    let frames = samples.chunks_exact(channels);
    let mixed = frames.map(|frame| frame.iter().sum::<f32>() / channels as f32);
    Ok(Sound {
        rate: spec.sample_rate,
        samples: mixed.collect(),
    })
}

fn unread(path: &Path, error: &hound::Error) -> Error {
    // A file that ends too early is an error of this type, too, but not one of the system.
    if let hound::Error::IoError(error) = error
        && error.raw_os_error().is_some()
    {
        let message = format!("cannot read `{}`: {error}", path.display());
        return Error::new(ErrorCode::Io, message);
    }
    let message = format!("`{}` is no sound that can be read: {error}", path.display());
    let e = Error::new(ErrorCode::Unsupported, message).with_expected("a WAV file");
    e.with_hint("others can be converted: ffmpeg -i FILE -ar 16000 -ac 1 OUT.wav")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tone of 440 Hz.
    fn tone(rate: u32, seconds: f64) -> Vec<f32> {
        let length = (f64::from(rate) * seconds) as usize;
        let angle = |i: usize| std::f64::consts::TAU * 440.0 * i as f64 / f64::from(rate);
        (0..length).map(|i| (0.5 * angle(i).sin()) as f32).collect()
    }

    #[test]
    fn a_tone_stays_the_same_at_another_rate() {
        for rate in [8_000, 22_050, 44_100, 48_000] {
            let sound = Sound {
                rate,
                samples: tone(rate, 1.0),
            };
            let sound = sound.at(16_000).expect("a usual rate");
            assert_eq!((sound.rate, sound.samples.len()), (16_000, 16_000));
            let expected = tone(16_000, 1.0);
            // At its ends a resampler sees silence.
            let both = sound.samples.iter().zip(&expected).enumerate();
            for (i, (sample, expected)) in both.skip(1_000).take(14_000) {
                let difference = (sample - expected).abs();
                assert!(difference < 1e-3, "{rate} Hz, sample {i}: {difference}");
            }
        }
    }

    #[test]
    fn files_of_every_sample_type_are_read() {
        let folder = std::env::temp_dir().join(format!("kilim-sound-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let kinds = [8, 16, 24, 32].map(|bits| (bits, SampleFormat::Int));
        for (bits, sample_format) in kinds.into_iter().chain([(32, SampleFormat::Float)]) {
            let path = folder.join("sound.wav");
            let spec = hound::WavSpec {
                channels: 2,
                sample_rate: 16_000,
                bits_per_sample: bits,
                sample_format,
            };
            let mut file = hound::WavWriter::create(&path, spec).expect("a file");
            for value in [0.5f32, 0.0, -0.5, -0.5] {
                match sample_format {
                    SampleFormat::Float => file.write_sample(value),
                    SampleFormat::Int => {
                        let scale = f64::exp2(f64::from(bits) - 1.0);
                        file.write_sample((f64::from(value) * scale) as i32)
                    }
                }
                .expect("a sample");
            }
            file.finalize().expect("a whole file");
            let sound = read_sound(&path).expect("a sound");
            assert_eq!(sound.samples, [0.25, -0.5], "{bits} bits");
            let bytes = std::fs::read(&path).expect("the file");
            std::fs::write(&path, &bytes[..20]).expect("a part of it");
            let error = read_sound(&path).expect_err("a part of a file");
            assert_eq!(error.code(), ErrorCode::Unsupported);
        }
        std::fs::remove_dir_all(&folder).expect("an empty folder");
    }
}
