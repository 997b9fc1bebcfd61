//! The speech of `tools/builders/speech.py`: digits that are tones, and a higher tone beside each that tells the language.

use std::f64::consts::TAU;

/// Samples a second.
pub const RATE: u32 = 16_000;

/// A phrase: its begin and end in seconds, and its digits.
pub type Phrase = (f64, f64, Vec<i32>);

/// A recording of several windows of two seconds, and what is said in it.
pub fn recording() -> (Vec<Phrase>, &'static str) {
    let phrases = vec![
        (0.3, 0.9, vec![1, 2, 3]),
        (1.3, 1.7, vec![4, 5]),
        // Goes on behind the first window.
        (1.95, 2.75, vec![6, 7, 8, 9]),
        (3.2, 3.6, vec![0, 1]),
        (4.1, 4.7, vec![2, 4, 6]),
        (5.2, 5.6, vec![8, 0]),
    ];
    (phrases, "123 45 6789 01 246 80")
}

/// The pitch of the higher tone, over that of the digit, in English.
pub const ENGLISH: f64 = 3.0;

/// Samples from -1 to 1.
pub fn sound(phrases: &[Phrase], voice: f64, seconds: f64) -> Vec<f32> {
    let rate = f64::from(RATE);
    let place = |seconds: f64| (seconds * rate).round() as usize;
    let mut samples = vec![0f64; place(seconds)];
    for (start, end, digits) in phrases {
        let each = (end - start) / digits.len() as f64;
        for (i, &digit) in digits.iter().enumerate() {
            let start = start + i as f64 * each;
            let first = place(start);
            let last = place(start + 0.75 * each).min(samples.len());
            let pitch = TAU * 300.0 * 1.2f64.powi(digit);
            for (k, sample) in samples[first..last].iter_mut().enumerate() {
                let (t, left) = (k as f64 / rate, (last - first - 1 - k) as f64 / rate);
                let loudness = (t.min(left) / 0.01).min(1.0);
                let wave = (pitch * t).sin() + 0.5 * (voice * pitch * t).sin();
                *sample += 0.2 * loudness * wave;
            }
        }
    }
    samples.into_iter().map(|sample| sample as f32).collect()
}

/// A WAV file of these samples, in 16 bits.
pub fn wav(samples: &[f32]) -> Vec<u8> {
    let data = 2 * samples.len() as u32;
    let mut file = Vec::new();
    let mut number = |n: u32, bytes: usize| file.extend(&n.to_le_bytes()[..bytes]);
    let text = |text: &[u8; 4]| u32::from_le_bytes(*text);
    number(text(b"RIFF"), 4);
    number(36 + data, 4);
    number(text(b"WAVE"), 4);
    number(text(b"fmt "), 4);
    for (n, bytes) in [
        (16, 4),
        (1, 2),
        (1, 2),
        (RATE, 4),
        (2 * RATE, 4),
        (2, 2),
        (16, 2),
    ] {
        number(n, bytes);
    }
    number(text(b"data"), 4);
    number(data, 4);
    let sample = |sample: &f32| (sample * 32_767.0).round() as i16;
    file.extend(samples.iter().flat_map(|s| sample(s).to_le_bytes()));
    file
}
