//! `kilim devices`.

use kilim::Runtime;
use kilim::core::backend::{Grade, Memory};

use crate::Failure;
use crate::commands::inspect::bytes;

#[derive(clap::Args)]
pub struct Args {}

pub async fn run(_: Args) -> Result<(), Failure> {
    let runtime = Runtime::shared();
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
    }
    println!("builtin: control flow and crossings, on the host");
    Ok(())
}
