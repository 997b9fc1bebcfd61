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
                say!("{id}: not available: {}", e.message());
                continue;
            }
        };
        let d = backend.describe();
        say!("{id}: {}", d.device);
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
        // What no machine has is no limit.
        match usize::try_from(d.max_tensor_bytes) {
            Ok(n) if n < isize::MAX as usize => {
                say!("  memory: {memory}, tensors up to {}", bytes(n));
            }
            _ => say!("  memory: {memory}"),
        }
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
                say!("  {what}: {}", dtypes.join(", "));
            }
        }
        print_speed(d, &kept);
    }
    say!("builtin: control flow and crossings, on the host");
    if let Some(file) = file.filter(|_| args.calibrate) {
        calibration::save(&file, &kept)?;
        say!("kept in {}", file.display());
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
    say!(
        "  speed ({how}): {:.1} GFLOP/s, {:.1} GB/s, {:.2} µs for a kernel",
        flops_per_second / 1e9,
        bytes_per_second / 1e9,
        kernel_start * 1e6
    );
    if device.memory == Memory::Device {
        say!(
            "  transfers ({how}): {:.2} µs and {:.1} GB/s each way",
            transfer_start * 1e6,
            transfer_bytes_per_second / 1e9
        );
    }
}
