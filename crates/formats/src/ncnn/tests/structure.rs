use kilim_core::DType;
use kilim_core::error::ErrorCode;

use super::{file, import_with, network, refused, structure};
use crate::shown::{operators, ports};

#[test]
fn words_say_what_text_says() {
    let weights = file("network", "model.bin");
    let text =
        import_with(&file("network", "model.param"), &[("m.bin", &weights)]).expect("a model");
    let words = import_with(
        &file("network_binary", "model.param"),
        &[("m.bin", &weights)],
    )
    .expect("a model");
    assert_eq!(operators(&text), operators(&words));
    // Sizes of a picture are open where outputs depend on them.
    assert_eq!(ports(&text)[0], "data float32[1,3,h,w]");
    assert_eq!(ports(&words)[0], "0 float32[1,3,h,w]");
}

#[test]
fn weights_are_found_by_name_or_as_the_only_file() {
    let (param, bin) = (file("conv", "model.param"), file("conv", "model.bin"));
    for files in [
        &[("m.bin", &bin[..])][..],
        &[("weights", &bin)],
        &[("m.bin", &bin), ("other", &[])],
    ] {
        assert!(import_with(&param, files).is_ok());
    }
    for files in [&[][..], &[("a", &bin[..]), ("b", &bin)]] {
        let error = refused(import_with(&param, files));
        assert_eq!(
            (error.code(), error.expected()),
            (ErrorCode::Io, Some("m.bin")),
            "{error}"
        );
        assert!(error.hint().is_some(), "{error}");
    }
    // A file of another network.
    let error = refused(import_with(&param, &[("m.bin", &bin[..bin.len() - 4])]));
    assert_eq!(
        (error.code(), error.op()),
        (ErrorCode::InvalidModel, Some("Convolution"))
    );
}

#[test]
fn weights_are_parts_of_the_file() {
    let graph = import_with(
        &file("conv", "model.param"),
        &[("m.bin", &file("conv", "model.bin"))],
    )
    .expect("a model");
    let mut buffers = std::collections::HashSet::new();
    let constants = graph.values.iter().filter_map(|v| v.constant.as_ref());
    for tensor in constants.filter(|t| t.dtype() == DType::F32 && t.len() > 1) {
        tensor.buffers(&mut |address, _| {
            buffers.insert(address);
        });
    }
    assert_eq!(buffers.len(), 1, "weights and bias share one buffer");
}

#[test]
fn halves_stay_halves() {
    let graph = import_with(
        &file("conv_half", "model.param"),
        &[("m.bin", &file("conv_half", "model.bin"))],
    )
    .expect("a model");
    let constants = graph.values.iter().filter_map(|v| v.constant.as_ref());
    assert!(
        constants
            .into_iter()
            .any(|t| t.dtype() == DType::F16 && t.shape() == [5, 3, 3, 3])
    );
}

#[test]
fn inputs_have_the_rank_that_layers_need() {
    let embed = structure(&network(&[
        "Input in 0 1 a",
        "Embed e 1 1 a b 0=4 1=9 3=36",
    ]))
    .expect("a model");
    assert_eq!(ports(&embed), ["a int32[1,w]", "b float32[w,4]"]);
    let lstm = structure(&network(&[
        "Input in 0 1 a",
        "Swish s 1 1 a b",
        "LSTM e 1 1 b c 0=4 1=96",
    ]))
    .expect("a model");
    assert_eq!(ports(&lstm)[0], "a float32[1,h,w]");
    let picture = structure(&network(&[
        "Input in 0 1 a",
        "Convolution e 1 1 a c 0=4 1=3 6=108",
    ]))
    .expect("a model");
    assert_eq!(ports(&picture)[0], "a float32[1,3,h,w]");
    // Two inputs may be of different sizes.
    let two = ["Input i 0 1 a", "Input j 0 1 b", "Concat c 2 1 a b c 0=0"];
    assert_eq!(
        ports(&structure(&network(&two)).expect("a model"))[1],
        "b float32[1,b.c,b.h,b.w]"
    );
}

#[test]
fn sizes_are_fixed_where_no_output_depends_on_them() {
    let global = ["Input in 0 1 a 0=20 1=30 2=3", "Pooling p 1 1 a b 0=1 4=1"];
    assert_eq!(
        ports(&structure(&network(&global)).expect("a model")),
        ["a float32[1,3,30,20]", "b float32[3]"]
    );
    let relu = ["Input in 0 1 a 0=20 1=30 2=3", "ReLU p 1 1 a b"];
    assert_eq!(
        ports(&structure(&network(&relu)).expect("a model")),
        ["a float32[1,3,h,w]", "b float32[3,h,w]"]
    );
}

#[test]
fn everything_that_is_refused_is_listed() {
    let layers = [
        "Input in 0 1 a 0=8 1=8 2=3",
        "Split s 1 4 a b c d e",
        "Whirl w 1 1 b f",
        "Convolution v 1 1 f g 0=4 1=3 6=108",
        "DetectionOutput o 1 1 c h",
        "Convolution y 1 1 d i 0=4 1=3 6=108 19=1",
        "Softmax z 1 1 e j 0=1",
    ];
    let error = refused(import_with(network(&layers).as_bytes(), &[]));
    assert_eq!(error.code(), ErrorCode::Unsupported);
    for part in [
        "Whirl: unknown operator at `w`",
        "DetectionOutput: boxes that depend on the data",
        "Convolution: weights that another layer computes at `y`",
        "Softmax: axes of an old file at `z`",
    ] {
        assert!(error.message().contains(part), "{error}");
    }
    assert!(!error.message().contains("`v`"), "{error}");
}

#[test]
fn blobs_that_only_a_noop_reads_are_outputs() {
    let layers = [
        "Input in 0 1 a 0=8",
        "Split s 1 2 a b c",
        "ReLU r 1 1 b d",
        "Noop n 2 1 d c e",
    ];
    assert_eq!(
        ports(&structure(&network(&layers)).expect("a model")),
        ["a float32[1,8]", "c float32[8]", "d float32[8]"]
    );
}

#[test]
fn parameters_are_numbers_lists_and_texts() {
    let layers = [
        "Input in 0 1 a 0=8 1=6 2=4",
        "Reshape r 1 1 a b 6=\"*(0w, 0h),0c\"",
    ];
    assert_eq!(
        ports(&structure(&network(&layers)).expect("a model"))[1],
        "b float32[4,?]"
    );
    for (layer, why) in [
        ("Clip c 1 1 a b 0=x,", "another form"),
        ("Clip c 1 1 a b 0=1.5.2", "no number"),
        ("Clip c 1 1 a b -23310=3,1,2", "another length"),
        ("Clip c 1 1 a b 32=1", "the key 32"),
        ("Clip c 1 1 z b", "no layer before writes"),
        ("Clip c 1 1 a a", "write the same blob"),
        ("Clip c 1 one a b", "a number is missing"),
    ] {
        let error = refused(structure(&network(&["Input in 0 1 a", layer])));
        assert!(
            matches!(
                error.code(),
                ErrorCode::InvalidModel | ErrorCode::InvalidGraph
            ),
            "{error}"
        );
        assert!(error.message().contains(why), "{layer}: {error}");
    }
}
