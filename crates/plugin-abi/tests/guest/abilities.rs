//! What a backend in Rust says of nodes and stages: the functions of its table, called as a host calls them.

use std::ffi::{CStr, c_char};
use std::ptr::{null, null_mut};

use kilim_plugin_abi as abi;
use kilim_plugin_abi::guest::{
    Choice, Choices, DataLayout, Description, Failure, Guest, Kernel, Node, NodeLayouts, Result,
    Scheduler, Task,
};

use crate::{node, open, told};

/// A backend that says nothing.
struct Silent;

impl Guest for Silent {
    fn open() -> Result<Silent> {
        Ok(Silent)
    }

    fn device(&self) -> &CStr {
        c"silent"
    }

    fn kernel(&self, _: &Node) -> Result<Box<dyn Kernel>> {
        Err(Failure::unsupported("nothing runs"))
    }
}

/// A backend that says all that there is to say of nodes and stages.
struct Able;

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
        Err(Failure::unsupported("nothing runs"))
    }

    fn node_layouts(&self) -> Option<&dyn NodeLayouts> {
        Some(self)
    }

    fn choices(&self) -> Option<&dyn Choices> {
        Some(self)
    }

    fn scheduler(&self) -> Option<&dyn Scheduler> {
        Some(self)
    }
}

impl NodeLayouts for Able {
    fn fastest(&self, node: &Node) -> Option<DataLayout> {
        match node.op {
            "First" => Some(DataLayout::ChannelsFirst),
            "Last" => Some(DataLayout::ChannelsLast),
            "Panics" => panic!("the question is on fire"),
            _ => None,
        }
    }
}

impl Choices for Able {
    fn choice(&self, node: &Node) -> Option<Choice> {
        let class = match node.op {
            "Panics" => panic!("the question is on fire"),
            "Long" => "x".repeat(500),
            "Any" => return None,
            op => op.to_string(),
        };
        let algorithms: &[&CStr] = match node.op {
            "Three" => &[c"a", c"b", c"c"],
            _ => &[c"a", c"b"],
        };
        Some(Choice { class, algorithms })
    }
}

impl Scheduler for Able {
    fn order(&self, tasks: &[Task]) -> Result<Vec<usize>> {
        let own = tasks.iter().position(Task::is_own);
        let own = own.ok_or_else(|| Failure::device("nothing is its own"))?;
        match tasks[own] {
            Task::Cross { from: 0, to: 1, .. } => Ok((0..tasks.len()).rev().collect()),
            Task::Part { part: 3, .. } => Ok(vec![own]),
            _ => panic!("the order is on fire"),
        }
    }
}

#[test]
fn what_a_backend_in_rust_says_nothing_of_is_not_in_its_table() {
    let has = |backend: &abi::Backend| {
        [
            backend.node_layout.is_some(),
            backend.choice.is_some(),
            backend.schedule.is_some(),
            backend.replica.is_some(),
            backend.replicate.is_some(),
            backend.is_packed.is_some(),
        ]
    };
    assert_eq!(has(open::<Silent>()), [false; 6]);
    assert_eq!(has(open::<Able>()), [true; 6]);
}

#[test]
fn a_backend_in_rust_wishes_layouts() {
    let backend = open::<Able>();
    let asked = [c"First", c"Last", c"Any", c"Panics"].map(|op| {
        let node = node(op);
        // SAFETY: a function of the table; the node lives during the call.
        unsafe { backend.node_layout.unwrap()(backend.this, &raw const node) }
    });
    assert_eq!(asked, [abi::NCHW, abi::NHWC, 0, 0]);
}

#[test]
fn a_backend_in_rust_names_algorithms() {
    let backend = open::<Able>();
    let ask = |op: &'static CStr| {
        let (node, mut names, mut count) = (node(op), null::<*const c_char>(), 0);
        let (_, class) = told(|class| {
            let ask = backend.choice.unwrap();
            // SAFETY: a function of the table; all pointers live during the call.
            count = unsafe { ask(backend.this, &raw const node, &raw mut names, class) };
            abi::OK
        });
        (count, names, class)
    };
    let (count, names, class) = ask(c"Two");
    assert_eq!((count, &class[..]), (2, "Two"));
    let (more, others, class) = ask(c"Three");
    assert_eq!((more, &class[..]), (3, "Three"));
    // SAFETY: there are as many names as were told, and they last as long as the backend.
    let all = unsafe {
        let all = [(names, count), (others, more)].map(|(names, count)| {
            let names = std::slice::from_raw_parts(names, count).iter();
            names.map(|&name| CStr::from_ptr(name)).collect::<Vec<_>>()
        });
        all.concat()
    };
    assert_eq!(all, [c"a", c"b", c"a", c"b", c"c"]);
    assert_eq!(ask(c"Other").1, names, "one list for the same names");
    // A class that does not fit would be another one.
    for none in [c"Any", c"Panics", c"Long"] {
        assert_eq!(ask(none).0, 0, "{none:?}");
    }
}

#[test]
fn a_backend_in_rust_orders_tasks() {
    let backend = open::<Able>();
    let other = abi::Task {
        kind: abi::TASK_PART,
        backend: 1,
        to: 1,
        part: 0,
        executable: null_mut(),
    };
    let own = |kind, part| abi::Task {
        kind,
        backend: 0,
        to: if kind == abi::TASK_CROSS { 1 } else { 0 },
        part,
        executable: std::ptr::dangling_mut(),
    };
    let ask = |task: abi::Task| {
        let (tasks, mut order) = ([other, task, other], [9; 3]);
        let said = told(|message| {
            let (from, to) = (tasks.as_ptr(), order.as_mut_ptr());
            // SAFETY: a function of the table; there are as many tasks, and as much room, as it is told.
            unsafe { backend.schedule.unwrap()(backend.this, from, 3, to, message) }
        });
        (said, order)
    };
    let ((status, _), order) = ask(own(abi::TASK_CROSS, 0));
    assert_eq!((status, order), (abi::OK, [2, 1, 0]));
    // What fails leaves the order as it was.
    let wrong = [
        (
            own(abi::TASK_PART, 3),
            "an order of 1 tasks where there are 3",
        ),
        (own(abi::TASK_PART, 0), "the order is on fire"),
        (other, "nothing is its own"),
    ];
    for (task, what) in wrong {
        let ((status, said), order) = ask(task);
        assert_eq!((status, order), (abi::DEVICE, [9; 3]));
        assert!(said.contains(what), "{said}");
    }
}
