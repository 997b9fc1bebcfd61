//! Kilim for Rust programs: sessions with the default backends registered.
//!
//! ```no_run
//! # async fn example() -> kilim::Result<()> {
//! let options = kilim::LoadOptions::default();
//! let mut session = kilim::load("model.onnx", options).await?;
//! let input = kilim::Tensor::zeros(kilim::DType::F32, &[1, 3, 224, 224])?;
//! let outputs = session.run(&[("input", input)], &Default::default()).await?;
//! # Ok(())
//! # }
//! ```

mod arm;
mod cache;
#[cfg(not(target_arch = "wasm32"))]
pub mod calibration;
pub mod compare;
#[cfg(not(target_arch = "wasm32"))]
mod folder;
mod pick;
mod runtime;
mod source;
pub mod verify;

pub use kilim_core as core;
pub use kilim_core::memory::{Arena, MemoryMode, Sharing};
pub use kilim_core::{
    BackendId, BackendRegistry, Calibration, DType, Datum, DeviceTensor, Dim, Error, ErrorCode,
    Fact, Form, Graph, Keep, Kind, Map, Metadata, Pin, Placement, Port, PrecisionPin, Report,
    Result, RunOptions, Session, SessionOptions, Shape, Tensor, Variable,
};
#[cfg(not(target_arch = "wasm32"))]
pub use kilim_core::{CommandQueue, MemoryHandle, MemoryKind, UserMemory};
pub use kilim_formats as formats;
#[cfg(feature = "cpu")]
pub use kilim_simd_cpu::{roofline, stir};

pub use cache::CacheUse;
pub use pick::Picked;
pub use runtime::Runtime;
pub use source::ModelSource;
pub use verify::{Verification, VerifyOptions, verify};

/// What is made of a model before it is made ready.
pub type Change = std::sync::Arc<dyn Fn(Graph) -> Result<Graph> + Send + Sync>;

/// How a model is loaded. The options of the session are read and set as if they were fields of this one:
///
/// ```
/// let mut options = kilim::LoadOptions::default();
/// options.pins = vec!["op:Conv=cpu".parse().unwrap()];
/// ```
#[derive(Clone)]
pub struct LoadOptions {
    /// In the order of preference. Where nobody is named: those that [`Runtime::pick`] finds.
    pub backends: Vec<BackendId>,
    /// What errors call the model, a URL for instance; if nothing is said, its path where it is a file.
    pub model_name: Option<String>,
    /// Whether weights may be read through links that lead out of the folder of a model that is a file.
    pub follow_links: bool,
    /// Whether a model is only looked at: where a file of weights that it does not name is missing, its numbers are zeros. Networks of
    /// ncnn (`.param`), PNNX (`.pnnx.param`) and TNN (`.tnnproto`) are shown so without their weights, as are MNN models whose file left them out.
    pub structure_only: bool,
    /// Operators that the model may have beside Kilim's own.
    pub operators: core::ops::CustomOperators,
    /// What decodes pictures for ImageDecoder: Kilim's own where this build has the feature
    /// `pictures`. Without one, the operator is refused.
    pub pictures: Option<core::ops::PictureReader>,
    /// Changes the model that was read.
    pub change: Option<Change>,
    /// Folders to look in for the libraries of backends that this build does not hold, and of importers where no format
    /// knows the model, before those of `KILIM_BACKEND_PATH`.
    #[cfg(all(feature = "plugins", not(target_arch = "wasm32")))]
    pub plugin_path: Vec<std::path::PathBuf>,
    /// How the session is made of what was read.
    pub session: SessionOptions,
}

impl Default for LoadOptions {
    /// No backend is named, so that the machine decides: see [`Runtime::pick`].
    fn default() -> Self {
        LoadOptions {
            backends: Vec::new(),
            model_name: None,
            follow_links: false,
            structure_only: false,
            operators: core::ops::CustomOperators::default(),
            #[cfg(feature = "pictures")]
            pictures: Some(kilim_pictures::READER),
            #[cfg(not(feature = "pictures"))]
            pictures: None,
            change: None,
            #[cfg(all(feature = "plugins", not(target_arch = "wasm32")))]
            plugin_path: Vec::new(),
            session: SessionOptions::default(),
        }
    }
}

impl std::ops::Deref for LoadOptions {
    type Target = SessionOptions;

    fn deref(&self) -> &SessionOptions {
        &self.session
    }
}

impl std::ops::DerefMut for LoadOptions {
    fn deref_mut(&mut self) -> &mut SessionOptions {
        &mut self.session
    }
}

/// Reads, optimises, places and plans a model, on the shared default [`Runtime`].
///
/// # Errors
/// `Io`, `UnknownFormat` and `InvalidModel` for the file, `Unsupported` with a list of all
/// operators that Kilim does not know, and everything that [`Session::new`] says.
pub async fn load(source: impl Into<ModelSource>, options: LoadOptions) -> Result<Session> {
    Runtime::shared().load(source, options).await
}
