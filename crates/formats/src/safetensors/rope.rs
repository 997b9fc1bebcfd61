//! How the heads of a model turn, by its settings (`modeling_rope_utils.py` of transformers). Version 5 of transformers has all of it in
//! `rope_parameters`; those before have `rope_theta` and `rope_scaling`.

use std::f64::consts::PI;

use kilim_core::error::{Result, unsupported};
use serde_json::Value;

use super::config::{Config, of_type};
use super::invalid;
use super::models::Model;
use crate::language::MOST_TURNED;

/// How the heads turn.
pub struct Turning {
    /// Words that a text has at most, with these angles.
    pub context: usize,
    /// Numbers of a head that turn.
    pub turned: usize,
    pub base: f64,
    pub base_of_windows: Option<f64>,
    /// What divides places.
    pub slower: f64,
    /// What divides the speed of each pair.
    pub factors: Option<Vec<f32>>,
    /// Multiplies cosines and sines.
    pub stretch: f32,
}

/// The settings of layers that look back on the whole text, and of those with windows.
fn parameters(config: &Config) -> Result<(Config, Option<Config>)> {
    if let Some(all) = config.object("rope_parameters")? {
        return Ok(match all.object("full_attention")? {
            Some(whole) => (whole, all.object("sliding_attention")?),
            None => (all, None),
        });
    }
    let scaling = config.object("rope_scaling")?;
    let mut values = Vec::new();
    for key in [
        "rope_type",
        "type",
        "factor",
        "low_freq_factor",
        "high_freq_factor",
        "original_max_position_embeddings",
        "attention_factor",
        "short_factor",
    ] {
        let value = scaling.as_ref().and_then(|scaling| scaling.get(key));
        values.extend(value.map(|value| (key, value.clone())));
    }
    let base = config.get("rope_theta");
    values.extend(base.map(|base| ("rope_theta", base.clone())));
    let windows = config.float("rope_local_base_freq")?;
    let windows = windows.map(|base| Config::of(vec![("rope_theta", Value::from(base))]));
    Ok((Config::of(values), windows))
}

/// What the settings call the angles; `default` where they say nothing.
fn kind(parameters: &Config) -> Result<String> {
    let kind = match parameters.text("rope_type")? {
        Some(kind) => Some(kind),
        None => parameters.text("type")?,
    };
    Ok(kind.unwrap_or_else(|| "default".to_string()))
}

fn number(parameters: &Config, key: &str) -> Result<f64> {
    let number = parameters.float(key)?.filter(|n| n.is_finite() && *n > 0.0);
    number.ok_or_else(|| of_type(key, "a number above 0"))
}

/// Reads how heads of `size` numbers turn, in texts of at most `context` words.
///
/// # Errors
/// `Unsupported` for angles that Kilim does not have, `InvalidModel` where a setting is missing or of another type.
pub fn read(config: &Config, model: &Model, size: usize, context: usize) -> Result<Turning> {
    let (whole, windows) = parameters(config)?;
    let base = |of: &Config| match of.has("rope_theta") {
        true => number(of, "rope_theta").map(Some),
        false => Ok(None),
    };
    if let Some(windows) = &windows
        && kind(windows)? != "default"
    {
        return Err(unsupported("scaled angles in layers with windows"));
    }
    let part = match whole.float("partial_rotary_factor")? {
        Some(part) => Some(part),
        None => config.float("partial_rotary_factor")?,
    };
    let turned = (size as f64 * part.unwrap_or(1.0)) as usize;
    let most = size.min(MOST_TURNED);
    if turned == 0 || turned > most || !turned.is_multiple_of(2) {
        return Err(invalid("numbers of a head that turn")
            .with_expected(format!("an even number up to {most}"))
            .with_got(turned));
    }
    let mut turning = Turning {
        context,
        turned,
        base: base(&whole)?.unwrap_or(model.base),
        base_of_windows: windows.as_ref().map(base).transpose()?.flatten(),
        slower: 1.0,
        factors: None,
        stretch: 1.0,
    };
    match kind(&whole)?.as_str() {
        "default" => {}
        "linear" => turning.slower = number(&whole, "factor")?,
        "llama3" => turning.factors = Some(by_wavelength(&whole, &turning)?),
        // Phi 3's first files call it `su`.
        "longrope" | "su" => short_factors(config, &whole, &mut turning)?,
        other => {
            let e = unsupported(format!("angles of the type `{other}`"));
            return Err(e.with_expected("default, linear, llama3, longrope"));
        }
    }
    Ok(turning)
}

/// Llama 3.1's: slow pairs are slowed down, fast ones are not, those between in part.
fn by_wavelength(of: &Config, turning: &Turning) -> Result<Vec<f32>> {
    let [factor, low, high, trained] = [
        "factor",
        "low_freq_factor",
        "high_freq_factor",
        "original_max_position_embeddings",
    ]
    .map(|key| number(of, key));
    let (factor, low, high, trained) = (factor?, low?, high?, trained?);
    if high <= low {
        return Err(of_type("high_freq_factor", "more than `low_freq_factor`"));
    }
    let pairs = 0..turning.turned / 2;
    let factors = pairs.map(|i| {
        let speed = turning.base.powf(-2.0 * i as f64 / turning.turned as f64);
        let turns = trained * speed / (2.0 * PI);
        // Beyond the two bounds the share is none and all.
        let kept = ((turns - low) / (high - low)).clamp(0.0, 1.0);
        (1.0 / (kept + (1.0 - kept) / factor)) as f32
    });
    Ok(factors.collect())
}

/// Phi 3's: factors for texts up to the length that the model was trained with first. Longer texts are not taken.
fn short_factors(config: &Config, of: &Config, turning: &mut Turning) -> Result<()> {
    let key = "original_max_position_embeddings";
    let trained = match of.count(key)? {
        Some(trained) => trained,
        None => config.needed(key)?,
    };
    let factors = of.floats("short_factor")?;
    let factors = factors.filter(|factors| {
        factors.len() == turning.turned / 2 && factors.iter().all(|&f| f.is_finite() && f > 0.0)
    });
    let factors = factors.ok_or_else(|| of_type("short_factor", "a factor for each pair"))?;
    let longer = turning.context as f64 / trained as f64;
    let stretch = match of.float("attention_factor")? {
        Some(stretch) => stretch,
        None if longer <= 1.0 => 1.0,
        None => (1.0 + longer.ln() / (trained as f64).ln()).sqrt(),
    };
    turning.factors = Some(factors.into_iter().map(|f| f as f32).collect());
    turning.stretch = stretch as f32;
    turning.context = turning.context.min(trained);
    Ok(())
}
