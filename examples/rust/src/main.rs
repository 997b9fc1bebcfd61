//! Names the digit in a picture: `digit MODEL PICTURE`.

use std::error::Error;

use kilim::{LoadOptions, RunOptions, Tensor};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [model, picture] = &arguments[..] else {
        return Err("usage: digit MODEL PICTURE".into());
    };
    let (digit, probability) = pollster::block_on(name(model, picture, LoadOptions::default()))?;
    println!("{digit} ({:.0} %)", 100.0 * probability);
    Ok(())
}

/// The most probable digit, with its probability.
async fn name(
    model: &str,
    picture: &str,
    options: LoadOptions,
) -> Result<(usize, f64), Box<dyn Error>> {
    let mut session = kilim::load(model, options).await?;
    // White ink on black, 28 by 28 pixels from 0 to 1, row by row.
    let pixels = image::open(picture)?.resize_exact(28, 28, image::imageops::FilterType::Triangle);
    let pixels: Vec<f32> = pixels.to_luma32f().into_raw();
    let image = Tensor::from_slice(&[1, 1, 28, 28], &pixels)?;
    let outputs = session
        .run(&[("image", image)], &RunOptions::default())
        .await?;
    // The model's batch is open, so that nodes are placed by the first run.
    for node in session.report().nodes {
        println!("{} runs on {}", node.name, node.backend);
    }
    let (_, probabilities) = outputs.first().ok_or("the model has no output")?;
    let probabilities = probabilities.to_f64s()?;
    let best = probabilities
        .iter()
        .copied()
        .enumerate()
        .max_by(|a, b| a.1.total_cmp(&b.1));
    best.ok_or_else(|| "the output is empty".into())
}

#[cfg(test)]
mod tests {
    use super::{LoadOptions, name};

    #[test]
    fn it_knows_the_digits_of_the_repository() {
        let assets = concat!(env!("CARGO_MANIFEST_DIR"), "/../../assets");
        // Not every machine that tests has a GPU.
        let options = LoadOptions {
            backends: vec!["cpu".into()],
            ..LoadOptions::default()
        };
        let model = format!("{assets}/digits.onnx");
        for digit in 0..10 {
            let picture = format!("{assets}/digit-{digit}.png");
            let named = name(&model, &picture, options.clone());
            assert_eq!(pollster::block_on(named).unwrap().0, digit);
        }
    }
}
