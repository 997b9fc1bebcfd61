//! What a backend says of its device and its options.

use std::ffi::{c_char, c_void};
use std::mem::offset_of;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::{Opened, handles};
use crate as abi;
use crate::guest::{Description, Guest, Half, OptionDef, OptionKind};

/// The size of a host's table that knows options, and with them the later fields of descriptions and of what contexts
/// are told.
const KNOWN_FROM: usize = offset_of!(abi::Backend, options) + size_of::<usize>();

/// What a guest says once, with the memory that the interface's pointers lead to.
pub struct Told {
    description: Description,
    grades: Vec<abi::DtypeGrade>,
    layouts: Vec<i32>,
    /// Whether the host knows options.
    pub knows_options: bool,
    /// Whether the host waits for work that was started.
    waits: bool,
    /// Whether the host attaches its memory.
    attaches: bool,
    /// Whether the host gives queues.
    pub knows_queues: bool,
    /// Kinds of the user's memory that the guest takes; none where the host does not know them.
    pub handle_kinds: Vec<abi::HandleKind>,
    /// Whether the host says which algorithms kernels are to have.
    pub chooses: bool,
    _choices: Vec<Box<[*const c_char]>>,
    pub options: Vec<abi::OptionInfo>,
}

impl Told {
    /// Asks the guest; `size` is the size of the host's table.
    pub fn by<G: Guest>(guest: &G, size: usize) -> Told {
        let description = guest.describe();
        let dtypes = description.dtypes.iter();
        let layouts = description.layouts.iter();
        let mut choices = Vec::new();
        Told {
            grades: dtypes
                .map(|&(dtype, grade)| abi::DtypeGrade { dtype, grade })
                .collect(),
            layouts: layouts.map(|layout| layout.number()).collect(),
            description,
            knows_options: size >= KNOWN_FROM,
            waits: size >= offset_of!(abi::Backend, wait) + size_of::<usize>(),
            attaches: size >= offset_of!(abi::Backend, attach) + size_of::<usize>(),
            knows_queues: handles::knows_queues(size),
            handle_kinds: handles::kinds(guest, size),
            chooses: size >= offset_of!(abi::Backend, choice) + size_of::<usize>(),
            options: G::options().iter().map(|o| info(o, &mut choices)).collect(),
            _choices: choices,
        }
    }
}

impl Told {
    /// Whether kernels run on a thread of their own: the guest wants it, and the host waits for them.
    pub fn is_queued(&self) -> bool {
        self.description.queued && self.waits
    }

    /// Whether kernels read and write memory of the session's: the guest wants it, and the host attaches it.
    pub fn is_on_host(&self) -> bool {
        self.description.memory == abi::MEMORY_HOST && self.attaches
    }

    /// Whether runs of one session at the same time share what its kernels have packed.
    pub fn has_replicas(&self) -> bool {
        self.description.replicas
    }

    /// Whether Kilim may let go of constants that are packed.
    pub fn packs(&self) -> bool {
        self.description.packs
    }
}

fn info(option: &OptionDef, choices: &mut Vec<Box<[*const c_char]>>) -> abi::OptionInfo {
    let words: Box<[_]> = match option.kind {
        OptionKind::Choice(words) => words.iter().map(|w| w.as_ptr()).collect(),
        _ => Box::default(),
    };
    let (choice_count, pointer) = (words.len(), words.as_ptr());
    choices.push(words);
    abi::OptionInfo {
        name: option.name.as_ptr(),
        kind: match option.kind {
            OptionKind::Switch => abi::OPTION_SWITCH,
            OptionKind::Integer => abi::OPTION_INTEGER,
            OptionKind::Number => abi::OPTION_NUMBER,
            OptionKind::Text => abi::OPTION_TEXT,
            OptionKind::Choice(_) => abi::OPTION_CHOICE,
        },
        initial: option.initial.as_ptr(),
        meaning: option.meaning.as_ptr(),
        choice_count,
        choices: pointer,
    }
}

pub unsafe extern "C" fn describe<G: Guest>(this: *mut c_void, out: *mut abi::Description) {
    // SAFETY: `this` is of `create`, `out` is Kilim's, with as many fields as its table says.
    unsafe {
        let opened = &*this.cast::<Opened<G>>();
        if let Ok(device) = catch_unwind(AssertUnwindSafe(|| opened.guest.device().as_ptr())) {
            (*out).device = device;
        }
        let told = &opened.told;
        let said = &told.description;
        (*out).dtype_count = told.grades.len();
        (*out).dtypes = told.grades.as_ptr();
        (*out).max_tensor_bytes = said.max_tensor_bytes;
        (*out).max_arena_bytes = said.max_arena_bytes;
        (*out).flops_per_second = said.flops_per_second;
        (*out).bytes_per_second = said.bytes_per_second;
        (*out).kernel_start = said.kernel_start;
        (*out).transfer_start = said.transfer_start;
        (*out).transfer_bytes_per_second = said.transfer_bytes_per_second;
        if told.knows_options {
            (*out).layout_count = told.layouts.len();
            (*out).layouts = told.layouts.as_ptr();
            (*out).dynamic_shapes = i32::from(said.dynamic_shapes);
            (*out).half = Half::number(said.half);
            (*out).quantized = said.quantized.number();
        }
        if told.attaches {
            (*out).memory = said.memory;
        }
        if !told.handle_kinds.is_empty() {
            (*out).handle_kind_count = told.handle_kinds.len();
            (*out).handle_kinds = told.handle_kinds.as_ptr();
        }
    }
}
