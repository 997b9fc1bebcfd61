//! `kilim devices`.

use kilim::core::backend::{Description, Grade, Memory, Speed};
use kilim::core::{SessionOptions, calibrate};
use kilim::{Calibration, Runtime, calibration};

use crate::commands::inspect::bytes;
use crate::{Failure, model};

#[derive(clap::Args)]
pub struct Args {
    /// Measure every device (about a second each) and keep the figures: placement then rests on
    /// them. They are in the file that KILIM_CALIBRATION names, else in the user's cache folder.
    #[arg(long)]
    calibrate: bool,
}

pub async fn run(args: Args) -> Result<(), Failure> {
    let runtime = Runtime::shared();
    let file = calibration::file();
    let mut kept = match &file {
        Some(file) if args.calibrate => calibration::load(file).unwrap_or_default(),
        Some(file) => calibration::load(file)?,
        None if args.calibrate => {
            let message = "there is no folder to keep the figures in; set KILIM_CALIBRATION";
            return Err(Failure::Usage(message.to_string()));
        }
        None => Calibration::default(),
    };
    for id in runtime.ids() {
        let backend = match runtime.backend(&id).await {
            Ok(backend) => backend,
            Err(e) => {
                println!("{id}: not available: {}", e.message());
                continue;
            }
        };
        let d = backend.describe();
        println!("{id}: {}", d.device);
        if args.calibrate {
            let clock = SessionOptions::default().clock;
            let bar = model::spinner(format!("measuring {id}"));
            let speed = calibrate::measure(&backend, clock).await;
            bar.finish_and_clear();
            kept.insert(d, speed?);
        }
        let memory = match d.memory {
            Memory::Host => "host",
            Memory::Device => "device",
        };
        println!(
            "  memory: {memory}, tensors up to {}",
            bytes(d.max_tensor_bytes as usize)
        );
        for (grade, what) in [
            (Grade::Fast, "fast"),
            (Grade::Arithmetic, "arithmetic"),
            (Grade::Storage, "storage"),
        ] {
            let dtypes: Vec<&str> = d
                .dtypes
                .iter()
                .filter(|(_, g)| *g == grade)
                .map(|(t, _)| t.name())
                .collect();
            if !dtypes.is_empty() {
                println!("  {what}: {}", dtypes.join(", "));
            }
        }
        print_speed(d, &kept);
    }
    println!("builtin: control flow and crossings, on the host");
    if let Some(file) = file.filter(|_| args.calibrate) {
        calibration::save(&file, &kept)?;
        println!("kept in {}", file.display());
    }
    Ok(())
}

fn print_speed(device: &Description, kept: &Calibration) {
    let measured = kept.speed(device);
    let how = if measured.is_some() {
        "measured"
    } else {
        "assumed"
    };
    let Speed {
        flops_per_second,
        bytes_per_second,
        kernel_start,
        transfer_start,
        transfer_bytes_per_second,
    } = measured.unwrap_or(device.speed);
    println!(
        "  speed ({how}): {:.1} GFLOP/s, {:.1} GB/s, {:.2} µs for a kernel",
        flops_per_second / 1e9,
        bytes_per_second / 1e9,
        kernel_start * 1e6
    );
    if device.memory == Memory::Device {
        println!(
            "  transfers ({how}): {:.2} µs and {:.1} GB/s each way",
            transfer_start * 1e6,
            transfer_bytes_per_second / 1e9
        );
    }
}
