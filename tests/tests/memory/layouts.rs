//! Copies inside of a backend and between any two, from one layout to another.

use std::sync::Arc;

use kilim::ErrorCode;

use crate::*;

#[test]
fn inputs_and_outputs_may_have_layouts_of_their_own() {
    use kilim::core::backend::DataLayout::{Blocked, ChannelsFirst, ChannelsLast};
    let shape = [1, 6, 8, 8];
    let x = weights(&shape);
    let mut plain = session(convolutions(6, Dim::Known(8)), options()).unwrap();
    let want = run(&mut plain, &x).unwrap();
    for user in [ChannelsLast, Blocked(4)] {
        let mut options = options();
        let model = ChannelsFirst;
        let names = plain.outputs().iter().map(|p| p.name.clone());
        for name in names.chain(["x".to_string()]) {
            let layout = kilim::core::session::PortLayout { model, user };
            options.layouts.insert(name, layout);
        }
        let mut s = session(convolutions(6, Dim::Known(8)), options).unwrap();
        let given = model.convert(&x, &shape, user).unwrap();
        let out = run(&mut s, &given).unwrap();
        assert_eq!(out.shape(), user.stored(&shape).unwrap());
        assert_eq!(user.convert(&out, &shape, model).unwrap(), want, "{user}");
        assert_eq!(run(&mut s, &x).unwrap_err().code(), ErrorCode::Shape);
    }
    let mut wrong = options();
    let model = ChannelsFirst;
    let layout = kilim::core::session::PortLayout { model, user: model };
    wrong.layouts.insert("nowhere".to_string(), layout);
    let error = session(convolutions(6, Dim::Known(8)), wrong)
        .err()
        .unwrap();
    assert_eq!(error.code(), ErrorCode::Input, "{error}");
}

/// An input in one executable of each backend that opens, copied through all of them.
#[test]
fn tensors_are_copied_between_any_two_backends() {
    use kilim::core::backend::{Backend, DataLayout, KernelSpec, Location, Memory};
    use kilim::core::backend::{StageSpec, TensorSlot, TensorSpec};
    use kilim::core::builtin::{StoredTensor, copy};
    use kilim::core::ids::{KernelIndex, PartIndex, TensorIndex};
    let stage = |backend: &Arc<dyn Backend>, shape: &[usize]| {
        let on_host = backend.describe().memory == Memory::Host;
        let slot = |name: &str, location| TensorSlot {
            name: name.into(),
            spec: TensorSpec::new(DType::F32, shape),
            location,
        };
        let first = match on_host {
            true => Location::Input,
            false => Location::Arena { offset: 0 },
        };
        let bytes: usize = shape.iter().product::<usize>() * 4;
        let offset = bytes.next_multiple_of(256);
        StageSpec {
            tensors: [slot("x", first), slot("y", Location::Arena { offset })].into(),
            nodes: [KernelSpec {
                name: "negative".into(),
                op: Arc::new(Unary(UnaryKind::Neg)),
                inputs: vec![Some(TensorIndex(0))],
                outputs: vec![TensorIndex(1)],
            }]
            .into(),
            parts: [KernelIndex(0)..KernelIndex(1)].into(),
            arena_bytes: 2 * offset,
            inputs: vec![TensorIndex(0)],
            outputs: vec![TensorIndex(1)],
        }
    };
    let opened = kilim::Runtime::shared().ids().into_iter().filter_map(|id| {
        let backend = pollster::block_on(Runtime::shared().backend(&id));
        backend.ok()
    });
    let backends: Vec<Arc<dyn Backend>> = opened.collect();
    let shape = [2, 5, 3, 2];
    let layouts = ["NCHW", "NHWC", "NC4HW4"].map(|l| DataLayout::parse(l).unwrap());
    let x = weights(&shape);
    for a in &backends {
        for b in &backends {
            for (from, to) in layouts.iter().flat_map(|a| layouts.map(|b| (*a, b))) {
                let open = |backend: &Arc<dyn Backend>, layout: DataLayout| {
                    let mut context = backend.create_context(&ContextConfig::default()).unwrap();
                    let stage = stage(backend, &layout.stored(&shape).unwrap());
                    let mut e = context.prepare(stage, &Interrupt::NEVER).unwrap();
                    pollster::block_on(context.warm_up(&Interrupt::NEVER)).unwrap();
                    e.execute_begin().unwrap();
                    e
                };
                let (mut source, mut target) = (open(a, from), open(b, to));
                let given = layouts[0].convert(&x, &shape, from).unwrap();
                source.write(TensorIndex(0), &given).unwrap();
                source.run(PartIndex(0), &Interrupt::NEVER).unwrap();
                let side = |executable, tensor, layout| StoredTensor {
                    executable,
                    tensor,
                    layout,
                };
                let copied = copy(
                    &shape,
                    side(&mut *source, TensorIndex(1), from),
                    side(&mut *target, TensorIndex(0), to),
                );
                pollster::block_on(copied).unwrap();
                // Inside the backend, from the input over the output.
                target.copy(TensorIndex(0), TensorIndex(1)).unwrap();
                let out = pollster::block_on(target.read(&[TensorIndex(1)]))
                    .unwrap()
                    .remove(0);
                let back = to.convert(&out, &shape, layouts[0]).unwrap();
                let negative: Vec<f64> = x.to_f64s().unwrap().iter().map(|v| -v).collect();
                assert_eq!(back.to_f64s().unwrap(), negative, "{from} to {to}");
            }
        }
    }
}
