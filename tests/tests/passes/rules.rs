//! Each rule of the passes changes something, and nothing when it is switched off.

use super::*;

/// A graph that a rule is meant for.
fn graph_for(rule: Rule) -> Graph {
    let mut b = Builder::new(rule as u64 + 1);
    let y = match rule {
        Rule::WidenHalf => {
            let x = b.input("x", &[2, 3]);
            let half = b.op(Cast::new(DType::F16), &[x]);
            let y = b.unary(UnaryKind::Neg, half);
            b.op(Cast::new(DType::F32), &[y])
        }
        Rule::BodyConstants => branches(&mut b, false),
        Rule::InlineBranches => branches(&mut b, true),
        Rule::Identities => {
            let x = b.input("x", &[2, 3]);
            let x = b.unary(UnaryKind::Identity, x);
            b.unary(UnaryKind::Neg, x)
        }
        Rule::FoldConstants => {
            let x = b.input("x", &[3]);
            let c = b.floats(&[3]);
            let c = b.unary(UnaryKind::Exp, c);
            b.binary(BinaryKind::Max, x, c)
        }
        Rule::DequantizeConstants => {
            let x = b.input("x", &[3]);
            let numbers = b.constant(Tensor::from_slice(&[3], &[1i8, -2, 3]).unwrap());
            let scale = b.scalar(0.5);
            let dequantize = DequantizeLinear { axis: 1, block: 0 };
            let c = b.op(dequantize, &[numbers, scale]);
            b.binary(BinaryKind::Max, x, c)
        }
        Rule::CommonSubexpressions => {
            let x = b.input("x", &[3]);
            let (p, q) = (b.unary(UnaryKind::Exp, x), b.unary(UnaryKind::Exp, x));
            b.binary(BinaryKind::Add, p, q)
        }
        Rule::DeadCode => {
            let x = b.input("x", &[3]);
            b.unary(UnaryKind::Exp, x);
            b.unary(UnaryKind::Neg, x)
        }
        Rule::QuantizedMovement => {
            let x = quantized_input(&mut b, "x");
            let x = b.transpose(x, &[1, 0]);
            quantized(&mut b, x)
        }
        Rule::QuantizedArithmetic => {
            let (x, y) = (quantized_input(&mut b, "x"), quantized_input(&mut b, "y"));
            let sum = b.binary(BinaryKind::Add, x, y);
            quantized(&mut b, sum)
        }
        Rule::Activations => {
            let x = b.input("x", &[3]);
            let s = b.unary(UnaryKind::Sigmoid, x);
            b.binary(BinaryKind::Mul, x, s)
        }
        Rule::Normalisations => {
            let x = b.input("x", &[2, 8]);
            let square = b.binary(BinaryKind::Mul, x, x);
            let mean = b.mean(square, &[-1], true);
            let epsilon = b.scalar(1e-5);
            let shifted = b.binary(BinaryKind::Add, mean, epsilon);
            let root = b.unary(UnaryKind::Sqrt, shifted);
            b.binary(BinaryKind::Div, x, root)
        }
        Rule::Rotary => rotary::turned_halves(&mut b, &[2, 3, 4]),
        Rule::FuseAttention => {
            let [q, k, v] = ["q", "k", "v"].map(|name| b.input(name, &[1, 2, 3, 4]));
            let k = b.transpose(k, &[0, 1, 3, 2]);
            let scores = b.op(MatMul::default(), &[q, k]);
            let weights = b.op(softmax(), &[scores]);
            b.op(MatMul::default(), &[weights, v])
        }
        Rule::Views => {
            let x = b.input("x", &[2, 3]);
            let (axis, shape) = (b.ints(&[0]), b.ints(&[3, 2]));
            let x = b.op(Unsqueeze, &[x, axis]);
            b.op(Reshape { allow_zero: false }, &[x, shape])
        }
        Rule::Dilation => dilated(&mut b),
        Rule::FuseDequantization => {
            let x = b.input("x", &[2, 3]);
            quantized::dynamic_product(&mut b, x, 4)
        }
        Rule::BatchNorm => {
            let x = b.input("x", &[1, 2, 4, 4]);
            let x = b.conv(x, 2, 3, 1);
            let factors = b.floats(&[3, 1, 1]);
            b.binary(BinaryKind::Mul, x, factors)
        }
        Rule::FusePadding => {
            let x = b.input("x", &[1, 2, 4, 4]);
            let pads = b.ints(&[0, 0, 1, 0, 0, 0, 0, 1]);
            let mode = PadMode::Constant;
            let x = b.op(Pad { mode }, &[x, pads]);
            b.conv(x, 2, 3, 1)
        }
        Rule::FuseIndexCast => {
            let table = b.input("table", &[2, 3]);
            let x = b.input("x", &[1]);
            let indices = b.unary(UnaryKind::Abs, x);
            let indices = b.unary(UnaryKind::Floor, indices);
            let indices = b.op(Cast::new(DType::I64), &[indices]);
            b.op(Gather { axis: 0 }, &[table, indices])
        }
        Rule::FuseActivation => {
            let x = b.input("x", &[1, 2, 4, 4]);
            let x = b.conv(x, 2, 3, 1);
            b.unary(UnaryKind::Relu, x)
        }
        Rule::FuseBias => {
            let product = product(&mut b);
            let bias = b.floats(&[4]);
            b.binary(BinaryKind::Add, product, bias)
        }
        Rule::FuseScale => {
            let product = product(&mut b);
            let factor = b.scalar(0.25);
            b.binary(BinaryKind::Mul, product, factor)
        }
        Rule::FuseResidual => {
            let x = b.input("x", &[1, 2, 4, 4]);
            let y = b.conv(x, 2, 2, 1);
            b.binary(BinaryKind::Add, y, x)
        }
        Rule::FuseFactor => {
            let product = packed_product(&mut b);
            let factor = b.input("factor", &[2, 4]);
            b.binary(BinaryKind::Mul, factor, product)
        }
        Rule::EarlySelection => {
            let x = b.input("x", &[3, 4]);
            let product = b.unary(UnaryKind::Exp, x);
            let at = b.ints(&[1]);
            b.op(Gather { axis: 0 }, &[product, at])
        }
        Rule::ChannelsLast => {
            let x = b.input("x", &[1, 2, 4, 4]);
            b.conv(x, 2, 3, 1)
        }
        Rule::Transposes => {
            let x = b.input("x", &[2, 3, 4]);
            let x = b.transpose(x, &[2, 0, 1]);
            let x = b.unary(UnaryKind::Neg, x);
            b.transpose(x, &[1, 2, 0])
        }
    };
    b.g.outputs = vec![y];
    b.g
}

/// A choice between two sums with a constant from outside.
fn branches(b: &mut Builder, known: bool) -> V {
    let x = b.input("x", &[3]);
    let captured = b.floats(&[3]);
    let body = |kind| {
        let mut g = Graph::new("body");
        let a = g.add_input("a", Fact::fixed(DType::F32, &[3]));
        let c = g.add_input("c", Fact::fixed(DType::F32, &[3]));
        let y = g.apply("y", Binary::new(kind), &[a, c]);
        g.outputs = vec![y];
        std::sync::Arc::new(g)
    };
    let choice = If {
        then_body: body(BinaryKind::Add),
        else_body: body(BinaryKind::Sub),
    };
    let condition = match known {
        true => b.constant(Tensor::from_bools(&[], &[true]).unwrap()),
        false => {
            let sum = b.mean(x, &[0], false);
            let zero = b.scalar(0.0);
            b.binary(BinaryKind::Greater, sum, zero)
        }
    };
    b.op(choice, &[condition, x, captured])
}

/// Bytes that [`quantized`] made of an input, as real numbers again.
fn quantized_input(b: &mut Builder, name: &str) -> V {
    let x = b.input(name, &[2, 3]);
    let bytes = quantized(b, x);
    let (scale, zero) = parameters(b);
    let dequantize = DequantizeLinear { axis: 1, block: 0 };
    b.op(dequantize, &[bytes, scale, zero])
}

fn quantized(b: &mut Builder, x: V) -> V {
    let (scale, zero) = parameters(b);
    let quantize = QuantizeLinear {
        axis: 1,
        block: 0,
        output: None,
    };
    b.op(quantize, &[x, scale, zero])
}

fn parameters(b: &mut Builder) -> (V, V) {
    let zero = b.constant(Tensor::scalar(3i8).unwrap());
    (b.scalar(0.125), zero)
}

/// A product of two inputs: constant weights would be scaled and shifted.
fn product(b: &mut Builder) -> V {
    let x = b.input("x", &[2, 3]);
    let w = b.input("w", &[3, 4]);
    b.op(MatMul::default(), &[x, w])
}

/// A product `[2, 4]` with weights of four bits.
fn packed_product(b: &mut Builder) -> V {
    let x = b.input("x", &[2, 16]);
    let bytes: Vec<u8> = (0..32u8).map(|i| i.wrapping_mul(37)).collect();
    let w = b.constant(Tensor::from_slice(&[4, 1, 8], &bytes).unwrap());
    let scales = b.floats(&[4, 1]);
    let op = MatMulNBits {
        k: 16,
        n: 4,
        bits: 4,
        block: 16,
        int8: false,
        activation: Activation::None,
    };
    b.op(op, &[x, w, scales])
}

fn dilated(b: &mut Builder) -> V {
    let x = b.input("x", &[1, 4, 4, 2]);
    let block = b.ints(&[2, 2]);
    let none = b.constant(Tensor::from_slice(&[2, 2], &[0i64; 4]).unwrap());
    let y = b.op(SpaceToBatch, &[x, block, none]);
    let w = b.floats(&[3, 2, 1, 1]);
    let conv = Conv {
        strides: vec![1, 1],
        dilations: vec![1, 1],
        padding: Padding::Valid,
        groups: 1,
        channels_last: true,
        activation: Activation::None,
    };
    let y = b.op(conv, &[y, w]);
    b.op(BatchToSpace, &[y, block, none])
}

#[test]
fn every_rule_can_be_switched_off() {
    for &rule in Rule::ALL {
        let graph = graph_for(rule);
        let (_, applied) = optimised_without(&graph, &[]);
        assert!(applied.contains(&rule), "{rule} does nothing: {applied:?}");
        let (_, applied) = optimised_without(&graph, &[rule]);
        assert!(
            !applied.contains(&rule),
            "{rule} is off, and changes something"
        );
        let mut random = Random(rule as u64 + 1);
        let inputs: Vec<(&str, Tensor)> = graph
            .inputs
            .iter()
            .map(|&v| {
                let value = graph.value(v);
                let numbers = random.floats(&value.fact.concrete().unwrap());
                (&value.name[..], numbers)
            })
            .collect();
        let plain = run(&graph, false, &inputs);
        for without in [&[][..], &[rule]] {
            let fast = run_with(&graph, &inputs, |o| o.without = without.to_vec());
            assert_alike(&plain, &fast, &format!("without {without:?}"));
        }
    }
}

/// The activation is of the whole, not of the product before the factor.
#[test]
fn an_activation_behind_a_factor_stays_there() {
    let mut b = Builder::new(7);
    let product = packed_product(&mut b);
    let factor = b.input("factor", &[2, 4]);
    let node = b.g.nodes.pop().unwrap();
    let mut inputs = node.inputs.clone();
    inputs.resize(7, None);
    inputs.push(Some(factor));
    b.g.push_shared(node.name, node.op, &inputs, &[product]);
    let y = b.unary(UnaryKind::Relu, product);
    b.g.outputs = vec![y];
    check(&b.g, 3);
}

#[test]
fn rules_have_names_of_their_own() {
    let names: BTreeSet<&str> = Rule::ALL.iter().map(|rule| rule.name()).collect();
    assert_eq!(names.len(), Rule::ALL.len());
    for &rule in Rule::ALL {
        assert_eq!(rule.name().parse::<Rule>().unwrap(), rule);
    }
    let error = "transpose".parse::<Rule>().unwrap_err();
    assert_eq!(error.code(), kilim::ErrorCode::InvalidValue);
    let text = error.to_string();
    assert!(text.contains("did you mean `transposes`"), "{text}");
    assert!(text.contains("fold-constants"), "{text}");
}
