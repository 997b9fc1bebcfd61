//! What runs of one session share: contexts and executables that are replicated, and constants that are packed, as a host asks for
//! them.

use std::ffi::{CStr, c_void};
use std::ptr::{null, null_mut};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use kilim_plugin_abi as abi;
use kilim_plugin_abi::guest::{Build, Data, Description, Failure, Guest, Kernel, Node, Result};

use crate::{node, open};

/// How often a weight of 2.5 was packed.
static PACKED: AtomicUsize = AtomicUsize::new(0);

struct Weight(f32);

/// `y = x + w`, where `Packs` has `w` in a form of its own, and `Reads` reads it as it is.
struct Able;

struct Plus(Option<Arc<Weight>>);

impl Kernel for Plus {
    fn run(&mut self, inputs: &[Option<&Data>], outputs: &mut [Data]) -> Result {
        let w = match (&self.0, inputs) {
            (Some(w), [_, None]) => w.0,
            (None, [_, Some(w)]) => w.f32s()[0],
            _ => {
                return Err(Failure::device(
                    "an input that was packed is given, or none",
                ));
            }
        };
        let x = inputs[0].ok_or_else(|| Failure::device("the input is missing"))?;
        outputs[0].f32s_mut()[0] = x.f32s()[0] + w;
        Ok(())
    }

    fn replica(&self) -> Option<Box<dyn Kernel>> {
        Some(Box::new(Plus(self.0.clone())))
    }
}

impl Guest for Able {
    fn open() -> Result<Able> {
        Ok(Able)
    }

    fn device(&self) -> &CStr {
        c"able"
    }

    fn describe(&self) -> Description {
        Description {
            replicas: true,
            packs: true,
            ..Description::default()
        }
    }

    fn kernel(&self, _: &Node) -> Result<Box<dyn Kernel>> {
        Ok(Box::new(Plus(None)))
    }

    fn kernel_with(&self, node: &Node, build: &mut Build) -> Result<Box<dyn Kernel>> {
        match node.op {
            "Packs" => {
                let packed = build.pack(1, |elements| {
                    let word = elements.first_chunk().copied().unwrap_or_default();
                    let weight = f32::from_ne_bytes(word);
                    PACKED.fetch_add(usize::from(weight == 2.5), Ordering::Relaxed);
                    Ok(Weight(weight))
                });
                Ok(Box::new(Plus(packed?)))
            }
            "Once" => Ok(Box::new(|_: &[Option<&Data>], _: &mut [Data]| Ok(()))),
            _ => self.kernel(node),
        }
    }
}

/// A session of a host's.
struct Session {
    backend: &'static abi::Backend,
    context: *mut c_void,
}

impl Session {
    fn new() -> Session {
        let backend = open::<Able>();
        let options = abi::ContextOptions {
            threads: 0,
            spare_memory: 0,
            layout: abi::NCHW,
            dynamic_shapes: 1,
            half: abi::HALF_OFF,
            quantized: abi::QUANTIZED_EXACT,
            timers: 0,
            setting_count: 0,
            settings: null(),
            queue: null(),
        };
        let mut context = null_mut();
        // SAFETY: a function of the table; all pointers live during the call.
        let status = unsafe {
            let create = backend.create_context.unwrap();
            create(
                backend.this,
                &raw const options,
                &raw mut context,
                null_mut(),
            )
        };
        assert_eq!(status, abi::OK);
        Session { backend, context }
    }

    fn replica(&self) -> Session {
        let (backend, mut context) = (self.backend, null_mut());
        // SAFETY: a function of the table, with a context of its own.
        let status = unsafe {
            let replica = backend.replica.unwrap();
            replica(backend.this, self.context, &raw mut context, null_mut())
        };
        assert_eq!(status, abi::OK);
        Session { backend, context }
    }

    /// A stage in which each operator computes a tensor of its own of the same `x` and `w`, which is known and in this place.
    fn prepare(
        &self,
        ops: &[&'static CStr],
        w: Option<&f32>,
        (place, key): (i32, u64),
    ) -> *mut c_void {
        let tensor = |data: *const c_void| abi::Tensor {
            name: c"".as_ptr(),
            dtype: abi::FLOAT32,
            rank: 0,
            shape: null(),
            data,
            bytes: 4,
        };
        let known = tensor(w.map_or(null(), |w| std::ptr::from_ref(w).cast()));
        let slot = |tensor, place, offset, key| abi::Slot {
            tensor,
            place,
            offset,
            of: 0,
            key,
        };
        let mut slots = vec![
            slot(tensor(null()), abi::ARENA, 0, 0),
            slot(known, place, 0, key),
        ];
        slots.extend((0..ops.len()).map(|i| slot(tensor(null()), abi::ARENA, 64 * (i + 1), 0)));
        let tensors: Vec<*const abi::Tensor> = slots.iter().map(|s| &raw const s.tensor).collect();
        let nodes = ops.iter().enumerate().map(|(i, op)| abi::Node {
            input_count: 2,
            inputs: tensors.as_ptr(),
            output_count: 1,
            outputs: &raw const tensors[2 + i],
            ..node(op)
        });
        let nodes: Vec<abi::Node> = nodes.collect();
        let (inputs, outputs): ([usize; 2], Vec<usize>) = ([0, 1], (2..slots.len()).collect());
        let steps = nodes.iter().zip(&outputs).map(|(node, output)| abi::Step {
            node,
            inputs: inputs.as_ptr(),
            outputs: output,
        });
        let (steps, parts): (Vec<abi::Step>, _) = (steps.collect(), [0, ops.len()]);
        let stage = abi::Stage {
            tensor_count: slots.len(),
            tensors: slots.as_ptr(),
            step_count: steps.len(),
            steps: steps.as_ptr(),
            part_count: 1,
            parts: parts.as_ptr(),
            arena_bytes: 64 * (ops.len() + 1),
            algorithms: null(),
        };
        let mut executable = null_mut();
        // SAFETY: a function of the table; all pointers live during the call.
        let status = unsafe {
            let prepare = self.backend.prepare.unwrap();
            let to = &raw mut executable;
            prepare(
                self.backend.this,
                self.context,
                &raw const stage,
                to,
                null_mut(),
            )
        };
        assert_eq!(status, abi::OK);
        executable
    }

    fn replicate(&self, executable: *mut c_void) -> (abi::Status, *mut c_void) {
        let mut replica = null_mut();
        // SAFETY: a function of the table, with a context and an executable of its own.
        let status = unsafe {
            let replicate = self.backend.replicate.unwrap();
            let to = &raw mut replica;
            replicate(self.backend.this, self.context, executable, to, null_mut())
        };
        (status, replica)
    }

    fn is_packed(&self, key: u64) -> bool {
        // SAFETY: a function of the table, with a context of its own.
        unsafe { self.backend.is_packed.unwrap()(self.backend.this, self.context, key) != 0 }
    }

    /// What a stage of so many operators computes of `x`, or the status.
    fn run(
        &self,
        executable: *mut c_void,
        x: f32,
        outputs: usize,
    ) -> std::result::Result<Vec<f32>, abi::Status> {
        let (b, bytes, mut memory) = (self.backend, 64 * (outputs + 1), null_mut());
        let mut found = vec![0f32; outputs];
        // SAFETY: functions of the table, with an executable and a block of its own; all pointers live during the calls.
        let status = unsafe {
            b.allocate.unwrap()(b.this, bytes, &raw mut memory, null_mut());
            b.bind.unwrap()(b.this, executable, memory, bytes, null_mut());
            let x = (&raw const x).cast();
            b.write.unwrap()(b.this, executable, 0, x, 4, null_mut());
            let status = b.run.unwrap()(b.this, executable, 0, null_mut());
            for (i, y) in found.iter_mut().enumerate() {
                let y = std::ptr::from_mut(y).cast();
                b.read.unwrap()(b.this, executable, 2 + i, y, 4, null_mut());
            }
            b.release.unwrap()(b.this, memory);
            status
        };
        (status == abi::OK).then_some(found).ok_or(status)
    }

    /// The status with which a tensor of one number is read.
    fn read(&self, executable: *mut c_void, tensor: usize) -> abi::Status {
        let (b, mut to) = (self.backend, 0f32);
        // SAFETY: a function of the table, with an executable of its own; there is room for one number.
        unsafe {
            let to = (&raw mut to).cast();
            b.read.unwrap()(b.this, executable, tensor, to, 4, null_mut())
        }
    }
}

#[test]
fn a_constant_goes_when_every_kernel_has_packed_it() {
    let session = Session::new();
    let w = Box::new(2.5f32);
    let [first, second] = [(); 2].map(|()| {
        let ops = [c"Packs", c"Packs"];
        session.prepare(&ops, Some(&w), (abi::CONSTANT, 7))
    });
    assert!(session.is_packed(7) && !session.is_packed(8));
    drop(w);
    for executable in [first, second] {
        assert_eq!(session.run(executable, 1.0, 2).unwrap(), [3.5, 3.5]);
        assert_eq!(session.read(executable, 1), abi::DEVICE, "it is gone");
    }
    // Stages that are made later find what was packed, and no elements.
    let (replica, none) = (session.replica(), None);
    let later = replica.prepare(&[c"Packs"], none, (abi::CONSTANT, 7));
    assert_eq!(replica.run(later, 2.0, 1).unwrap(), [4.5]);
    let raw = replica.prepare(&[c"Reads"], none, (abi::CONSTANT, 7));
    assert_eq!(replica.run(raw, 2.0, 1), Err(abi::DEVICE));
    let (status, copy) = replica.replicate(first);
    assert_eq!(status, abi::OK);
    assert_eq!(replica.run(copy, 5.0, 2).unwrap(), [7.5, 7.5]);
    assert_eq!(PACKED.load(Ordering::Relaxed), 1);
}

#[test]
fn a_constant_stays_that_a_kernel_reads_as_it_is() {
    let session = Session::new();
    let w = 2f32;
    let both = [c"Packs", c"Reads"];
    let executable = session.prepare(&both, Some(&w), (abi::CONSTANT, 7));
    assert!(!session.is_packed(7));
    assert_eq!(session.run(executable, 1.0, 2).unwrap(), [3.0, 3.0]);
    assert_eq!(session.read(executable, 1), abi::OK);
    // A stage that reads it not, beside one that does.
    session.prepare(&[c"Packs"], Some(&w), (abi::CONSTANT, 7));
    assert!(!session.is_packed(7) && !session.replica().is_packed(7));
}

#[test]
fn what_is_known_for_one_stage_is_copied_for_its_replica() {
    let session = Session::new();
    let replica = session.replica();
    let mut w = 2f32;
    for op in [c"Packs", c"Reads"] {
        w = 2.0;
        let executable = session.prepare(&[op], Some(&w), (abi::PLANNED, 0));
        let (status, copy) = replica.replicate(executable);
        assert_eq!(status, abi::OK);
        // SAFETY: a function of the table, with what `prepare` gave, which is released once.
        unsafe { session.backend.release_executable.unwrap()(session.backend.this, executable) };
        w = 100.0;
        assert_eq!(replica.run(copy, 1.0, 1).unwrap(), [3.0], "{op:?}");
    }
    assert!(w > 2.0 && !session.is_packed(0));
    // A kernel that cannot be had twice has the host prepare the stage again.
    let once = session.prepare(&[c"Once"], Some(&w), (abi::PLANNED, 0));
    assert_eq!(replica.replicate(once).0, abi::UNSUPPORTED);
}
