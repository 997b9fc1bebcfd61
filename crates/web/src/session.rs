//! A session as a JavaScript class.

use std::cell::{Cell, RefCell};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;

use js_sys::{Array, Function, Object, Promise, Uint8Array};
use kilim::{BackendId, LoadOptions, MemoryMode, ModelSource, Runtime, Session, VerifyOptions};
use kilim_core::ops::PictureReader;
use kilim_core::report::NodeTime;
use kilim_core::schedule::{OverlappedScheduler, SyncScheduler};
use kilim_core::session::{MixedPrecision, RunOptions};
use kilim_core::{Datum, Error, ErrorCode, Keep};
use wasm_bindgen::prelude::wasm_bindgen;
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::future_to_promise;

use crate::calibrate;
use crate::clock::seconds;
use crate::convert;
use crate::draft;
use crate::file::WasmFile;
use crate::kept::Kept;
use crate::metadata;
use crate::pictures;
use crate::speech;
use crate::stop::Stop;
use crate::text;

/// A model ready to run. While a call is under way only `abort` and `free` may be called. What inputs
/// hold is read before a call returns its promise.
#[wasm_bindgen]
pub struct WasmSession {
    session: Rc<Cell<Option<Session>>>,
    pub(crate) kept: Kept,
    pub(crate) text: text::Place,
    pub(crate) speech: speech::Place,
    /// What stops the call that is under way.
    stop: RefCell<Arc<Stop>>,
}

#[wasm_bindgen]
impl WasmSession {
    /// Loads the first of `files`, which errors call by the first of `names` unless that is empty; the
    /// others are those that it refers to, by the other `names`. `options` are `{backends?, strict?, pins?, precision?, mixedPrecision?, configs?,
    /// operators?, brought?, draft?, pictures?, dims?, memory?, limits?, tune?, cache?}`.
    pub async fn load(
        files: Vec<WasmFile>,
        names: Vec<String>,
        options: JsValue,
    ) -> Result<WasmSession, JsValue> {
        let open = convert::field(&options, "pictures");
        let pictures = pictures::reader(files.first(), open).await?;
        let session = load(files, names, &options, pictures).await;
        Ok(WasmSession {
            session: Rc::new(Cell::new(Some(session.map_err(|e| convert::error(&e))?))),
            kept: Kept::default(),
            text: text::Place::default(),
            speech: speech::Place::default(),
            stop: RefCell::new(Arc::new(Stop::new(None))),
        })
    }

    /// `[{name, type, dims, kind, optional}]`.
    pub fn inputs(&self) -> Result<Array, JsValue> {
        self.look(|session| session.inputs().iter().map(convert::port).collect())
    }

    /// `[{name, type, dims, kind, optional}]`.
    pub fn outputs(&self) -> Result<Array, JsValue> {
        self.look(|session| session.outputs().iter().map(convert::port).collect())
    }

    /// What the model says of itself, as [`metadata::list`] has it.
    pub fn metadata(&self) -> Result<Array, JsValue> {
        self.look(|session| metadata::list(session.metadata()))
    }

    /// The report as JSON.
    pub fn report(&self) -> Result<String, JsValue> {
        json(&self.look(|session| session.report())?)
    }

    /// A number that changes when the report does.
    pub fn revision(&self) -> Result<f64, JsValue> {
        self.look(|session| session.revision() as f64)
    }

    /// Runs the model on values (see [`Kept::given`]), which the run uses up: a promise of the outputs (see [`Kept::objects`]).
    /// `timeout` is in milliseconds. `stopped` is asked every few milliseconds, while kernels compute, too, whether
    /// the run is to stop. Outputs whose names fit one of the patterns of `keep` stay in the runtime. With `outputs`, the run gives
    /// the outputs of these patterns and the kept ones.
    pub fn run(
        &self,
        feeds: &Array,
        timeout: Option<f64>,
        stopped: Option<Function>,
        keep: Option<Vec<String>>,
        outputs: Option<Vec<String>>,
    ) -> Result<Promise, JsValue> {
        let feeds = self.given(feeds)?;
        let options = RunOptions {
            keep: Keep::new(keep.unwrap_or_default()),
            outputs: outputs.map(Keep::new),
            ..self.run_options(timeout, stopped)
        };
        let kept = self.kept.clone();
        self.promise(async move |session| {
            let (names, data): (Vec<String>, Vec<Datum>) = feeds.into_iter().unzip();
            let inputs = names.iter().map(String::as_str).zip(data).collect();
            let outputs = session.run_owned(inputs, &options).await;
            let objects = outputs.and_then(|outputs| kept.objects(outputs));
            Ok(objects.map_err(|e| convert::error(&e))?.into())
        })
    }

    /// A promise of the elements of a kept tensor, as [`convert::datum_object`] gives them.
    #[wasm_bindgen(js_name = readKept)]
    pub fn read_kept(&self, number: u32) -> Result<Promise, JsValue> {
        let tensor = self.kept.get(number).map_err(|e| convert::error(&e))?;
        Ok(future_to_promise(async move {
            let read = tensor.read().await;
            let object = read.and_then(|tensor| convert::tensor_object("", &tensor));
            object.map_err(|e| convert::error(&e))
        }))
    }

    /// Gives back the memory of kept tensors.
    #[wasm_bindgen(js_name = releaseKept)]
    pub fn release_kept(&self, numbers: &[u32]) {
        self.kept.release(numbers);
    }

    /// What the nodes of backends with timers took in the last run, as JSON.
    pub fn times(&self) -> Result<String, JsValue> {
        json(&self.look(|session| session.times())?)
    }

    /// Runs the model once and times every node: a promise of `[outputs, times as JSON]`. The rest as in
    /// [`WasmSession::run`].
    pub fn profile(
        &self,
        feeds: &Array,
        timeout: Option<f64>,
        stopped: Option<Function>,
        outputs: Option<Vec<String>>,
    ) -> Result<Promise, JsValue> {
        let feeds = self.given(feeds)?;
        let options = RunOptions {
            outputs: outputs.map(Keep::new),
            ..self.run_options(timeout, stopped)
        };
        let kept = self.kept.clone();
        self.promise(async move |session| {
            let result = session.profile(&borrowed(&feeds), &options).await;
            let (outputs, times) = result.map_err(|e| convert::error(&e))?;
            let times: Vec<NodeTime> = times;
            let outputs = kept.objects(outputs).map_err(|e| convert::error(&e))?;
            Ok(Array::of2(&outputs.into(), &json(&times)?.into()).into())
        })
    }

    /// Compares two backends node by node: `{reference?, candidate?, tolerance?}` in, a promise of JSON out.
    /// `stopped` as in [`WasmSession::run`].
    pub fn verify(
        &self,
        feeds: &Array,
        options: &JsValue,
        stopped: Option<Function>,
    ) -> Result<Promise, JsValue> {
        let feeds = self.given(feeds)?;
        let mut options = verify_options(options).map_err(|e| convert::error(&e))?;
        options.abort = self.run_options(None, stopped).abort;
        self.promise(async move |session| {
            let result = kilim::verify(session, &borrowed(&feeds), &options).await;
            Ok(json(&result.map_err(|e| convert::error(&e))?)?.into())
        })
    }

    /// Gives the model's variables the values that they had before the first run.
    pub fn reset(&self) -> Result<(), JsValue> {
        self.change(Session::reset)
    }

    /// What is known of the devices, for the option `cache` of [`WasmSession::load`].
    #[wasm_bindgen(js_name = saveCache)]
    pub fn save_cache(&self) -> Vec<u8> {
        Runtime::shared().save_cache()
    }

    /// Stops the call that is under way at its next step.
    pub fn abort(&self) {
        self.stop.borrow().tell();
    }
}

impl WasmSession {
    pub(crate) fn given(&self, feeds: &Array) -> Result<Vec<(String, Datum)>, JsValue> {
        let given = self.kept.given(feeds);
        given.map_err(|error| convert::error(&error))
    }

    /// Options of the call that is about to begin, which [`WasmSession::abort`] stops.
    pub(crate) fn run_options(
        &self,
        timeout: Option<f64>,
        stopped: Option<Function>,
    ) -> RunOptions {
        let stop = Arc::new(Stop::new(stopped));
        self.stop.replace(stop.clone());
        RunOptions {
            abort: Some(stop),
            timeout: timeout.map(|ms| ms / 1000.0),
            ..RunOptions::default()
        }
    }

    /// What `change` makes of the session.
    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut Session) -> T) -> Result<T, JsValue> {
        let mut session = self.take()?;
        let made = change(&mut session);
        self.session.set(Some(session));
        Ok(made)
    }

    fn take(&self) -> Result<Session, JsValue> {
        self.session.take().ok_or_else(|| {
            let error = Error::new(ErrorCode::State, "the session is busy with another run");
            convert::error(&error)
        })
    }

    /// A promise of what `call` makes of the session, which is taken out meanwhile.
    pub(crate) fn promise(
        &self,
        call: impl AsyncFnOnce(&mut Session) -> Result<JsValue, JsValue> + 'static,
    ) -> Result<Promise, JsValue> {
        let mut session = self.take()?;
        let place = self.session.clone();
        // In a box, so that what makes a promise of it is in the binary once.
        let future: Pin<Box<dyn Future<Output = Result<JsValue, JsValue>>>> =
            Box::pin(async move {
                let result = call(&mut session).await;
                place.set(Some(session));
                result
            });
        Ok(future_to_promise(future))
    }

    pub(crate) fn look<T>(&self, look: impl FnOnce(&Session) -> T) -> Result<T, JsValue> {
        self.change(|session| look(session))
    }
}

async fn load(
    files: Vec<WasmFile>,
    names: Vec<String>,
    given: &JsValue,
    pictures: Option<PictureReader>,
) -> kilim_core::Result<Session> {
    let files: Vec<_> = files.into_iter().map(WasmFile::given).collect();
    let mut names = names.into_iter();
    let name = names.next().filter(|name| !name.is_empty());
    let source = match convert::field(given, "draft") {
        Some(made) => ModelSource::Draft(draft::draft(&made, files)?),
        None => {
            let mut files = files.into_iter();
            let missing = || Error::new(ErrorCode::Io, "no model was given");
            ModelSource::Given {
                model: files.next().ok_or_else(missing)?,
                external: names.zip(files).collect(),
            }
        }
    };
    // What a cache has of a backend of the page goes to the one that the session has.
    if let Some(backends) = convert::field(given, "brought") {
        crate::backend::bring(&Runtime::shared(), &backends)?;
    }
    if let Some(Ok(cache)) = convert::field(given, "cache").map(|c| c.dyn_into::<Uint8Array>()) {
        let (runtime, cache) = (Runtime::shared(), cache.to_vec());
        // SAFETY: in a browser no driver takes compiled pipelines; the rest is checked.
        unsafe { runtime.load_cache(&cache) }.await?;
    }
    let mut options = self::options(given)?;
    if let Some(settings) = convert::field(given, "logMel").and_then(|s| s.as_string()) {
        options.change = Some(speech::listening(&settings)?);
    }
    options.pictures = pictures;
    options.model_name = name;
    kilim::stir((js_sys::Math::random() * 2f64.powi(53)) as u64);
    kilim::load(source, options).await
}

fn options(given: &JsValue) -> kilim_core::Result<LoadOptions> {
    let mut options = LoadOptions::default();
    options.clock = seconds;
    if let Some(backends) = convert::field(given, "backends") {
        options.backends = convert::strings(&backends, "the option `backends`")?
            .iter()
            .map(|id| id.as_str().into())
            .collect();
    }
    if let Some(tune) = convert::field(given, "tune") {
        options.tune = tune.is_truthy();
    }
    if let Some(keep) = convert::field(given, "keepWeights") {
        options.keep_weights = keep.is_truthy();
    }
    if let Some(strict) = convert::field(given, "strict") {
        options.strict = strict.is_truthy();
    }
    if let Some(pins) = convert::field(given, "pins") {
        let pins = convert::strings(&pins, "the option `pins`")?;
        options.pins = pins.iter().map(|p| p.parse()).collect::<Result<_, _>>()?;
    }
    if let Some(pins) = convert::field(given, "precision") {
        let pins = convert::strings(&pins, "the option `precision`")?;
        options.precisions = pins.iter().map(|p| p.parse()).collect::<Result<_, _>>()?;
    }
    if let Some(rules) = convert::field(given, "without") {
        let rules = convert::strings(&rules, "the option `without`")?;
        options.without = rules.iter().map(|r| r.parse()).collect::<Result<_, _>>()?;
    }
    if let Some(settings) = convert::field(given, "configs") {
        for setting in convert::strings(&settings, "the option `configs`")? {
            options.configs.set(&setting.parse()?);
        }
    }
    if let Some(mixed) = convert::field(given, "mixedPrecision") {
        options.mixed_precision = Some(mixed_precision(&mixed)?);
    }
    if let Some(operators) = convert::field(given, "operators") {
        options.operators = crate::operators::operators(&operators)?;
    }
    if let Some(schedule) = convert::field(given, "schedule") {
        options.scheduler = match schedule.as_string().as_deref() {
            Some("sync") => Arc::new(SyncScheduler),
            Some("overlapped") => Arc::new(OverlappedScheduler::default()),
            _ => {
                return Err(Error::new(
                    ErrorCode::InvalidValue,
                    "the option `schedule` is not understood",
                )
                .with_expected("`sync` or `overlapped`"));
            }
        };
    }
    if let Some(text) = convert::field(given, "calibration").and_then(|c| c.as_string()) {
        options.calibration = calibrate::parse(&text)?;
    }
    if let Some(memory) = convert::field(given, "memory") {
        options.context.memory = match memory.as_string().as_deref() {
            Some("normal") => MemoryMode::Normal,
            Some("limit") => MemoryMode::Limit,
            _ => {
                return Err(Error::new(
                    ErrorCode::InvalidValue,
                    "the option `memory` is not understood",
                )
                .with_expected("`normal` or `limit`"));
            }
        };
    }
    if let Some(limits) = convert::field(given, "limits").and_then(|l| l.as_string()) {
        options.limits = limits.parse()?;
    }
    if let Some(dims) = convert::field(given, "dims") {
        for (name, size) in entries(&dims) {
            let size = convert::size(&size, &format!("the dimension `{name}`"))?;
            options.dims.insert(name, size);
        }
    }
    if let Some(outputs) = convert::field(given, "outputs") {
        let names = convert::strings(&outputs, "the option `outputs`")?;
        options.outputs = Some(Keep::new(names));
    }
    if let Some(axes) = convert::field(given, "lastOnly") {
        for (name, axis) in entries(&axes) {
            let axis = convert::axis(&axis, &format!("the axis of `{name}`"))?;
            options.last_only.insert(name, axis);
        }
    }
    Ok(options)
}

/// Mixed precision from `{tolerance, samples}`, each sample a list of tensors with their names.
fn mixed_precision(given: &JsValue) -> kilim_core::Result<MixedPrecision> {
    let list = |value: Option<JsValue>| value.and_then(|v| v.dyn_into::<Array>().ok());
    let sample = |feeds: JsValue| {
        let feeds = list(Some(feeds)).unwrap_or_default();
        let tensor = |feed: JsValue| {
            let (name, datum) = convert::datum(&feed)?;
            Ok((name, datum.into_tensor()?))
        };
        feeds.iter().map(tensor).collect()
    };
    let samples = list(convert::field(given, "samples")).unwrap_or_default();
    let tolerance = convert::field(given, "tolerance").and_then(|t| t.as_f64());
    Ok(MixedPrecision {
        tolerance: tolerance.unwrap_or(f64::NAN),
        samples: samples
            .iter()
            .map(sample)
            .collect::<kilim_core::Result<_>>()?,
    })
}

fn verify_options(given: &JsValue) -> kilim_core::Result<VerifyOptions> {
    let mut options = VerifyOptions::default();
    let id = |name| {
        let field = convert::field(given, name)?;
        Some(BackendId::from(field.as_string()?.as_str()))
    };
    options.reference = id("reference").unwrap_or(options.reference);
    options.candidate = id("candidate");
    if let Some(tolerance) = convert::field(given, "tolerance") {
        options.tolerance = tolerance.as_f64().unwrap_or(f64::NAN);
    }
    if !(options.tolerance >= 0.0) {
        let message = "the tolerance is not a number of at least 0";
        return Err(Error::new(ErrorCode::InvalidValue, message));
    }
    Ok(options)
}

/// The names and values of an object.
fn entries(given: &JsValue) -> impl Iterator<Item = (String, JsValue)> {
    let entries = given.dyn_ref::<Object>().map(Object::entries);
    entries.unwrap_or_default().into_iter().map(|entry| {
        let entry: Array = entry.unchecked_into();
        (entry.get(0).as_string().unwrap_or_default(), entry.get(1))
    })
}

fn borrowed(values: &[(String, Datum)]) -> Vec<(&str, Datum)> {
    values
        .iter()
        .map(|(name, value)| (name.as_str(), value.clone()))
        .collect()
}

pub(crate) fn json<T: serde::Serialize>(value: &T) -> Result<String, JsValue> {
    serde_json::to_string(value).map_err(|error| {
        let error = Error::new(ErrorCode::State, format!("cannot write JSON: {error}"));
        convert::error(&error)
    })
}
