//! `kilim devices`.

use std::sync::Arc;

use kilim::core::backend::{Backend, Description, Grade, Memory, Speed};
use kilim::core::{SessionOptions, calibrate};
use kilim::{BackendId, Calibration, ErrorCode, LoadOptions, Runtime, calibration};

use crate::commands::inspect::bytes;
use crate::{Failure, model};

#[derive(clap::Args)]
pub struct Args {
    /// Measure every device (about a second each) and keep the figures: placement then rests on
    /// them. They are in the file that KILIM_CALIBRATION names, else in the user's cache folder.
    #[arg(long)]
    calibrate: bool,
    /// A folder with libraries of other backends, `libbackend_ID.so`; may be given several times. Those
    /// in the folders of KILIM_BACKEND_PATH are listed, too.
    #[cfg(feature = "plugins")]
    #[arg(long, value_name = "FOLDER")]
    plugin_path: Vec<std::path::PathBuf>,
}

impl Args {
    /// The backends that are built in, then those in libraries.
    fn ids(&self, runtime: &Runtime, options: &LoadOptions) -> Vec<BackendId> {
        let ids = runtime.ids().into_iter();
        #[cfg(feature = "plugins")]
        let ids = ids.chain(runtime.libraries(options));
        #[cfg(not(feature = "plugins"))]
        let _ = options;
        ids.collect()
    }
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
    let mut options = LoadOptions::default();
    #[cfg(feature = "plugins")]
    options.plugin_path.clone_from(&args.plugin_path);
    for id in args.ids(&runtime, &options) {
        options.backends = vec![id.clone()];
        let backend = match runtime.backends(&options).await.as_deref() {
            Ok([backend]) => backend.clone(),
            Ok(_) => continue,
            Err(e) => {
                say!("{id}: not available: {}", e.sentence());
                continue;
            }
        };
        let device = backend.describe();
        say!("{id}: {}", device.device);
        if args.calibrate {
            measure(&backend, &mut kept).await?;
        }
        for (number, name) in backend.devices().await.iter().enumerate() {
            say!("  device {number}: {name}");
        }
        print_abilities(device);
        print_speed(device, &kept);
        for option in backend.options() {
            let (name, kind, meaning) = (&option.name, &option.kind, &option.meaning);
            say!("  --config {}:{name}={kind}  {meaning}", device.id);
        }
    }
    say!("builtin: control flow and crossings, on the host");
    if let Some(file) = file.filter(|_| args.calibrate) {
        calibration::save(&file, &kept)?;
        say!("kept in {}", file.display());
    }
    Ok(())
}

/// Measures a device, if it runs what it is measured with.
async fn measure(backend: &Arc<dyn Backend>, kept: &mut Calibration) -> Result<(), Failure> {
    let device = backend.describe();
    let bar = model::spinner(format!("measuring {}", device.id));
    let speed = calibrate::measure(backend, SessionOptions::default().clock).await;
    bar.finish_and_clear();
    match speed {
        Ok(speed) => kept.insert(device, speed),
        Err(e) if e.code() == ErrorCode::NoBackend => {
            say!("  not measured: it runs neither MatMul nor Neg, Relu or Abs in float32");
        }
        Err(e) => return Err(e.into()),
    }
    Ok(())
}

fn print_abilities(device: &Description) {
    let memory = match device.memory {
        Memory::Host => "host",
        Memory::Device => "device",
    };
    // What no machine has is no limit.
    match usize::try_from(device.max_tensor_bytes) {
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
        let dtypes = device.dtypes.iter().filter(|(_, g)| *g == grade);
        let dtypes: Vec<&str> = dtypes.map(|(t, _)| t.name()).collect();
        if !dtypes.is_empty() {
            say!("  {what}: {}", dtypes.join(", "));
        }
    }
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
