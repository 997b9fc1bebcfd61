//! The functions of the C interface for a [`Guest`].

use std::ffi::{CStr, CString, c_char, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::guest::{Call, Failure, Guest, Node, OperatorDef, TensorInfo, Values};
use crate::{self as abi, Status};

pub(crate) mod attributes;
mod calls;
mod context;
mod device;
mod evaluate;
mod handles;
mod kept;
mod memory;
mod nodes;
mod program;
mod queue;
mod replica;
mod rewrite;
mod schedule;
mod state;

use device::Told;
use nodes::Lists;
use queue::Queue;

/// What a call gives inside: a failure with the step to blame, or -1.
pub(crate) type Outcome<T = ()> = std::result::Result<T, (Failure, i64)>;

/// What `Backend.this` points to.
struct Opened<G> {
    guest: G,
    /// Whether the host asks for memory and binds it.
    planned: bool,
    told: Told,
    /// Where kernels run, if that is not in the calls.
    queue: Option<Arc<Queue>>,
    table: abi::Backend,
    operators: Vec<abi::Operator>,
    /// Names of algorithms.
    lists: Lists,
}

impl<G: Guest> Opened<G> {
    /// Tells the guest of a call.
    fn hear(&self, call: Call) {
        // Whoever panics here has nobody to hear it.
        let _ = catch_unwind(AssertUnwindSafe(|| self.guest.hear(call)));
    }
}

/// A text of the interface; zeros inside become spaces.
pub(crate) fn c_text(text: &str) -> CString {
    CString::new(text.replace('\0', " ")).unwrap_or_default()
}

fn say(message: *mut abi::Message, text: &str, node: i64) {
    // SAFETY: Kilim gives a message with room for `capacity` bytes, or none.
    unsafe {
        let Some(message) = message.as_mut() else {
            return;
        };
        message.node = node;
        let room = message.capacity.saturating_sub(1);
        let text = CString::new(text.replace('\0', " ")).unwrap_or_default();
        let bytes = text.as_bytes();
        let bytes = &bytes[..bytes.len().min(room)];
        if message.capacity > 0 {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), message.text.cast(), bytes.len());
            message.text.add(bytes.len()).write(0);
        }
    }
}

/// Runs `work`; a panic becomes a failure.
fn caught(work: impl FnOnce() -> Outcome) -> Outcome {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<&str>().map(|s| (*s).to_string());
        let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
        let text = format!("the library panicked: {}", text.unwrap_or_default());
        Err((Failure::device(text), -1))
    })
}

/// Runs `work`; what goes wrong, panics included, becomes a status and words.
pub(crate) fn guarded(message: *mut abi::Message, work: impl FnOnce() -> Outcome) -> Status {
    match caught(work) {
        Ok(()) => abi::OK,
        Err((failure, node)) => {
            say(message, &failure.text, node);
            failure.status
        }
    }
}

/// A text of the interface; empty where it is NULL or no UTF-8.
///
/// # Safety
/// `pointer` is NULL, or its bytes end with a zero and live and stay as they are during `'a`.
pub(crate) unsafe fn text<'a>(pointer: *const c_char) -> &'a str {
    if pointer.is_null() {
        return "";
    }
    // SAFETY: it is not NULL, so its bytes end with a zero and live during `'a`.
    unsafe { CStr::from_ptr(pointer) }.to_str().unwrap_or("")
}

/// A list of the interface; empty where it is NULL.
///
/// # Safety
/// `pointer` is NULL, or aligned for `T` with `count` items behind it that live and stay as they are during `'a`.
pub(crate) unsafe fn list<'a, T>(pointer: *const T, count: usize) -> &'a [T] {
    if pointer.is_null() || count == 0 {
        return &[];
    }
    // SAFETY: it is not NULL, so `count` items are there and live during `'a`.
    unsafe { std::slice::from_raw_parts(pointer, count) }
}

/// What the interface says of a tensor.
///
/// # Safety
/// The name is NULL or ends with a zero, the shape has `rank` sizes unless that is negative, the data is NULL or has
/// `bytes` bytes, and all of them live and stay as they are during `'a`.
unsafe fn tensor<'a>(t: &abi::Tensor) -> TensorInfo<'a> {
    // SAFETY: the name ends with a zero, and shape and data are as long as `rank` and `bytes` say.
    unsafe {
        TensorInfo {
            name: text(t.name),
            dtype: t.dtype,
            shape: usize::try_from(t.rank).ok().map(|rank| list(t.shape, rank)),
            data: (!t.data.is_null()).then(|| list(t.data.cast(), t.bytes)),
        }
    }
}

/// What the interface says of a node.
///
/// # Safety
/// `n` and all that it points to live and stay as they are during `'a`, texts end with a zero, lists have as many items as
/// their counts say and of the type that an attribute's `kind` says; inputs may be NULL, outputs are not.
unsafe fn node<'a>(n: *const abi::Node) -> Node<'a> {
    // SAFETY: the node and all that it points to are as `abi::Node` says and live during `'a`; outputs are never
    // NULL.
    unsafe {
        let n = &*n;
        let tensors = |list: &[*const abi::Tensor]| -> Vec<Option<TensorInfo<'a>>> {
            list.iter().map(|t| t.as_ref().map(|t| tensor(t))).collect()
        };
        let attributes = list(n.attributes, n.attribute_count).iter().map(|a| {
            let values = match a.kind {
                abi::INTS => Values::Ints(list(a.values.cast(), a.count)),
                abi::FLOATS => Values::Floats(list(a.values.cast(), a.count)),
                abi::BYTES => Values::Bytes(list(a.values.cast(), a.count)),
                abi::TEXTS => {
                    let texts: &[*const c_char] = list(a.values.cast(), a.count);
                    Values::Texts(texts.iter().map(|&t| text(t)).collect())
                }
                _ => Values::Other,
            };
            (text(a.name), values)
        });
        Node {
            name: text(n.name),
            domain: text(n.domain),
            op: text(n.op),
            inputs: tensors(list(n.inputs, n.input_count)),
            outputs: tensors(list(n.outputs, n.output_count))
                .into_iter()
                .flatten()
                .collect(),
            attributes: attributes.collect(),
        }
    }
}

/// Opens a backend; behind `kilim_backend_create`.
///
/// # Safety
/// `host` is valid for reads of a `Host` as large as its `size` says, `backend` for writes of a pointer, and `error` is NULL
/// or a message with room for `capacity` bytes.
pub unsafe fn create<G: Guest>(
    host: *const abi::Host,
    backend: *mut *const abi::Backend,
    error: *mut abi::Message,
) -> Status {
    guarded(error, || {
        // SAFETY: `host` is Kilim's.
        let (version, size) = unsafe { ((*host).version, (*host).size) };
        if version != abi::VERSION {
            let text = format!(
                "the library is for version {} of the interface, Kilim has {version}",
                abi::VERSION
            );
            return Err((Failure::unsupported(text), -1));
        }
        let guest = G::open().map_err(|f| (f, -1))?;
        let told = Told::by(&guest, size as usize);
        let queue = match told.is_queued() {
            true => Some(Arc::new(Queue::start().map_err(|f| (f, -1))?)),
            false => None,
        };
        let (queued, on_host) = (queue.is_some(), told.is_on_host());
        let imports = !told.handle_kinds.is_empty();
        let keeps = !on_host || imports;
        let (replicas, packs) = (told.has_replicas(), told.packs());
        let has_layouts = guest.node_layouts().is_some();
        let (has_choices, orders) = (guest.choices().is_some(), guest.scheduler().is_some());
        let operators = G::operators().iter().map(|o| abi::Operator {
            domain: o.domain.as_ptr(),
            name: o.name.as_ptr(),
            this: std::ptr::from_ref(o).cast_mut().cast(),
            infer: Some(infer),
        });
        let mut opened = Box::new(Opened {
            guest,
            planned: size as usize >= memory::KNOWN_FROM,
            operators: operators.collect(),
            lists: Lists::default(),
            told,
            queue,
            table: abi::Backend {
                describe: Some(device::describe::<G>),
                supports: Some(supports::<G>),
                create_context: Some(context::create_context::<G>),
                release_context: Some(context::release_context::<G>),
                prepare: Some(program::prepare::<G>),
                release_executable: Some(program::release),
                write: Some(calls::write),
                run: Some(calls::run),
                read: Some(calls::read),
                begin: Some(calls::begin),
                end: Some(calls::end),
                bytes: Some(calls::bytes),
                allocate: Some(memory::allocate::<G>),
                release: Some(memory::release::<G>),
                bind: Some(calls::bind),
                set_timing: Some(calls::set_timing),
                times: Some(calls::times),
                submit: queued.then_some(context::submit),
                wait: queued.then_some(context::wait),
                copy: Some(calls::copy),
                // In host memory results are handed out as they are; tensors in the user's memory are kept.
                keep: keeps.then_some(kept::keep::<G>),
                use_kept: keeps.then_some(kept::use_kept),
                read_kept: keeps.then_some(kept::read_kept),
                release_kept: keeps.then_some(kept::release_kept),
                import_memory: imports.then_some(handles::import_memory::<G>),
                keep_in: imports.then_some(handles::keep_in),
                write_kept: imports.then_some(handles::write_kept),
                queue: Some(handles::queue::<G>),
                attach: on_host.then_some(calls::attach),
                evaluate: Some(evaluate::evaluate::<G>),
                save_cache: Some(state::save_cache::<G>),
                load_cache: Some(state::load_cache::<G>),
                is_lost: Some(state::is_lost::<G>),
                reopen: Some(state::reopen::<G>),
                optimise: Some(rewrite::optimise::<G>),
                node_layout: has_layouts.then_some(nodes::node_layout::<G>),
                choice: has_choices.then_some(nodes::choice::<G>),
                schedule: orders.then_some(schedule::schedule::<G>),
                replica: replicas.then_some(replica::replica::<G>),
                replicate: replicas.then_some(replica::replicate::<G>),
                is_packed: packs.then_some(replica::is_packed::<G>),
                ..abi::Backend::EMPTY
            },
        });
        opened.table.operator_count = opened.operators.len();
        opened.table.operators = opened.operators.as_ptr();
        opened.table.option_count = opened.told.options.len();
        opened.table.options = opened.told.options.as_ptr();
        let opened = Box::into_raw(opened);
        // SAFETY: fresh from the box; Kilim gave `backend` to be written.
        unsafe {
            (*opened).table.this = opened.cast();
            *backend = &raw const (*opened).table;
        }
        Ok(())
    })
}

/// Closes a backend; behind `kilim_backend_destroy`.
///
/// # Safety
/// `backend` is what [`create`] gave for the same guest, its executables are released, and it is not used any more.
pub unsafe fn destroy<G: Guest>(backend: *const abi::Backend) {
    // SAFETY: `this` is the box of `create`, ended once.
    let opened = unsafe { Box::from_raw((*backend).this.cast::<Opened<G>>()) };
    // A panic while the device closes has nobody to hear it.
    let _ = catch_unwind(AssertUnwindSafe(move || drop(opened)));
}

unsafe extern "C" fn supports<G: Guest>(
    this: *mut c_void,
    n: *const abi::Node,
    cost: *mut abi::Cost,
    reason: *mut abi::Message,
) -> Status {
    guarded(reason, || {
        // SAFETY: `this` is of `create`, `n` is Kilim's.
        let (opened, node) = unsafe { (&*this.cast::<Opened<G>>(), node(n)) };
        opened.guest.kernel(&node).map_err(|f| (f, -1))?;
        // SAFETY: Kilim gave `cost` to be read and written.
        unsafe { *cost = opened.guest.cost(&node, *cost) };
        Ok(())
    })
}

unsafe extern "C" fn infer(
    this: *mut c_void,
    n: *const abi::Node,
    outputs: *mut abi::Output,
    error: *mut abi::Message,
) -> Status {
    guarded(error, || {
        // SAFETY: `this` is of `Guest::operators`, the node Kilim's.
        let (def, node) = unsafe { (&*this.cast::<OperatorDef>(), node(n)) };
        let infos = (def.infer)(&node).map_err(|f| (f, -1))?;
        let fits = infos.iter().all(|o| o.shape.len() <= abi::MAX_RANK);
        if infos.len() < node.outputs.len() || !fits {
            return Err((
                Failure::unsupported("outputs of another number or rank"),
                -1,
            ));
        }
        for (i, info) in infos.iter().take(node.outputs.len()).enumerate() {
            let mut shape = [0; abi::MAX_RANK];
            shape[..info.shape.len()].copy_from_slice(&info.shape);
            let output = abi::Output {
                dtype: info.dtype,
                rank: info.shape.len() as i32,
                shape,
            };
            // SAFETY: Kilim gave room for an output for each of the node.
            unsafe { outputs.add(i).write(output) };
        }
        Ok(())
    })
}
