//! Loading a model as the command line asks for it.

use std::path::{Path, PathBuf};

use kilim::{LoadOptions, Session};

use crate::Failure;
use crate::mixed::MixedArgs;
use crate::model::BackendArgs;

/// A model, and how it is run.
#[derive(clap::Args)]
pub struct ModelArgs {
    /// The model file.
    #[arg(value_name = "MODEL")]
    pub file: PathBuf,
    #[command(flatten)]
    pub backends: BackendArgs,
    #[command(flatten)]
    mixed: MixedArgs,
}

impl ModelArgs {
    pub async fn load(&self) -> Result<Session, Failure> {
        self.load_with(self.backends.options()?).await
    }

    pub async fn load_with(&self, options: LoadOptions) -> Result<Session, Failure> {
        self.load_other(&self.file, options).await
    }

    /// A session of another model, which is run in the same way.
    pub async fn load_other(&self, file: &Path, options: LoadOptions) -> Result<Session, Failure> {
        self.mixed.load(file, options).await
    }
}
