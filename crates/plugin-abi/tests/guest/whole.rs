//! What a backend in Rust may have beside kernels: merged nodes, caches, a device that is lost.

use std::ffi::{CStr, c_char, c_void};
use std::ptr::{null, null_mut};
use std::sync::Mutex;

use kilim_plugin_abi as abi;
use kilim_plugin_abi::guest::{
    Change, Failure, Guest, Kernel, NewNode, NewValues, Node, Result, Subgraph,
};

use crate::open;

/// Merges the first two steps and gives the third back.
struct Whole {
    cache: Mutex<Vec<u8>>,
    lost: Mutex<bool>,
}

impl Guest for Whole {
    fn open() -> Result<Whole> {
        Ok(Whole {
            cache: Mutex::new(Vec::new()),
            lost: Mutex::new(true),
        })
    }

    fn device(&self) -> &CStr {
        c"whole"
    }

    fn kernel(&self, _: &Node) -> Result<Box<dyn Kernel>> {
        Err(Failure::unsupported("nothing runs"))
    }

    fn optimise(&self, subgraph: &Subgraph) -> Result<Vec<Change>> {
        let [first, second, third] = &subgraph.steps[..] else {
            return Err(Failure::device("another number of steps"));
        };
        let inner = first.outputs[0];
        if subgraph.tensors[inner].escapes {
            return Ok(Vec::new());
        }
        let with = NewNode {
            name: second.node.name.to_string(),
            domain: "com.example".to_string(),
            op: format!("{}{}", first.node.op, second.node.op),
            attributes: vec![
                (
                    "through".to_string(),
                    NewValues::Texts(vec![subgraph.tensors[inner].info.name.to_string()]),
                ),
                ("sizes".to_string(), NewValues::Ints(vec![3, 4])),
            ],
            inputs: vec![first.inputs[0], None],
            outputs: second.outputs.clone(),
        };
        let reason = format!("{} is not worth it", third.node.name);
        Ok(vec![
            Change::Replace {
                steps: vec![0, 1],
                with,
            },
            Change::GiveBack { step: 2, reason },
        ])
    }

    fn save_cache(&self) -> Vec<u8> {
        self.cache.lock().unwrap().clone()
    }

    fn load_cache(&self, cache: &[u8]) -> Result {
        if cache.is_empty() {
            return Err(Failure::device("an empty cache"));
        }
        *self.cache.lock().unwrap() = cache.to_vec();
        Ok(())
    }

    fn is_lost(&self) -> bool {
        *self.lost.lock().unwrap()
    }

    fn reopen(&self) -> Result {
        *self.lost.lock().unwrap() = false;
        Ok(())
    }
}

fn text(pointer: *const c_char) -> String {
    // SAFETY: the texts of these tests end with a zero.
    unsafe { CStr::from_ptr(pointer) }
        .to_str()
        .unwrap()
        .to_string()
}

unsafe extern "C" fn refuse(this: *mut c_void, step: usize, reason: *const c_char) {
    // SAFETY: `this` is the list of the test.
    let told = unsafe { &mut *this.cast::<Vec<String>>() };
    told.push(format!("refuse {step}: {}", text(reason)));
}

unsafe extern "C" fn replace(
    this: *mut c_void,
    steps: *const usize,
    count: usize,
    with: *const abi::Step,
) {
    // SAFETY: `this` is the list of the test, and the step is as the interface says.
    unsafe {
        let told = &mut *this.cast::<Vec<String>>();
        let steps = std::slice::from_raw_parts(steps, count);
        let node = &*(*with).node;
        let inputs = std::slice::from_raw_parts((*with).inputs, node.input_count);
        let outputs = std::slice::from_raw_parts((*with).outputs, node.output_count);
        let [through, sizes] = std::slice::from_raw_parts(node.attributes, node.attribute_count)
        else {
            panic!("two attributes")
        };
        let through = (
            text(through.name),
            text(*through.values.cast::<*const c_char>()),
        );
        let sizes = std::slice::from_raw_parts(sizes.values.cast::<i64>(), sizes.count);
        let name = [node.domain, node.op, node.name].map(text).join(" ");
        let absent = inputs[1] == abi::ABSENT;
        told.push(format!(
            "{steps:?} {name} {} {absent} {outputs:?} {through:?} {sizes:?}",
            inputs[0]
        ));
    }
}

#[test]
fn a_backend_in_rust_merges_nodes_and_gives_others_back() {
    let backend = open::<Whole>();
    let names = [c"x", c"inner", c"y", c"z"];
    let tensors = names.map(|name| abi::Tensor {
        name: name.as_ptr(),
        dtype: abi::FLOAT32,
        rank: 0,
        shape: null(),
        data: null(),
        bytes: 4,
    });
    let ops = [c"Neg", c"Relu", c"Exp"];
    let nodes = [0, 1, 2].map(|i: usize| abi::Node {
        name: names[i + 1].as_ptr(),
        domain: c"".as_ptr(),
        op: ops[i].as_ptr(),
        attribute_count: 0,
        attributes: null(),
        input_count: 1,
        inputs: null(),
        output_count: 0,
        outputs: null(),
    });
    let ends: [[usize; 2]; 3] = [[0, 1], [1, 2], [2, 3]];
    let lists: Vec<[*const abi::Tensor; 2]> = ends
        .iter()
        .map(|[a, b]| [&raw const tensors[*a], &raw const tensors[*b]])
        .collect();
    let nodes: Vec<abi::Node> = nodes
        .into_iter()
        .zip(&lists)
        .map(|(node, list)| abi::Node {
            inputs: &raw const list[0],
            output_count: 1,
            outputs: &raw const list[1],
            ..node
        })
        .collect();
    let steps: Vec<abi::Step> = nodes
        .iter()
        .zip(&ends)
        .map(|(node, [from, to])| abi::Step {
            node,
            inputs: from,
            outputs: to,
        })
        .collect();
    let escapes = [0, 0, 1, 1];
    let subgraph = abi::Subgraph {
        tensor_count: 4,
        tensors: tensors.as_ptr(),
        escapes: escapes.as_ptr(),
        step_count: 3,
        steps: steps.as_ptr(),
    };
    let mut told: Vec<String> = Vec::new();
    let rewrite = abi::Rewrite {
        this: (&raw mut told).cast(),
        refuse: Some(refuse),
        replace: Some(replace),
    };
    // SAFETY: a function of the table; all pointers live during the call.
    let status = unsafe {
        let optimise = backend.optimise.unwrap();
        optimise(
            backend.this,
            &raw const subgraph,
            &raw const rewrite,
            null_mut(),
        )
    };
    assert_eq!(status, abi::OK);
    let merged = r#"[0, 1] com.example NegRelu y 0 true [2] ("through", "inner") [3, 4]"#;
    assert_eq!(told, [merged, "refuse 2: z is not worth it"]);
}

#[test]
fn a_backend_in_rust_keeps_a_cache_and_comes_back() {
    let backend = open::<Whole>();
    let (save, load) = (backend.save_cache.unwrap(), backend.load_cache.unwrap());
    let mut room = [0u8; 8];
    // SAFETY: functions of the table; there is as much room, and there are as many bytes, as they are told.
    unsafe {
        assert_eq!(save(backend.this, null_mut(), 0), 0);
        assert_eq!(
            load(backend.this, room.as_ptr().cast(), 0, null_mut()),
            abi::DEVICE
        );
        assert_eq!(
            load(backend.this, c"learnt".as_ptr().cast(), 6, null_mut()),
            abi::OK
        );
        assert_eq!(
            save(backend.this, room.as_mut_ptr().cast(), 4),
            6,
            "too little room"
        );
        assert_eq!(room, [0; 8]);
        assert_eq!(save(backend.this, room.as_mut_ptr().cast(), 8), 6);
        assert_eq!(&room[..6], b"learnt");
        assert_eq!(backend.is_lost.unwrap()(backend.this, null_mut()), 1);
        assert_eq!(backend.reopen.unwrap()(backend.this, null_mut()), abi::OK);
        assert_eq!(backend.is_lost.unwrap()(backend.this, null_mut()), 0);
    }
}
