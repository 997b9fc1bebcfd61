//! The C header and the Rust types are of one layout: a C compiler checks it.

use std::mem::offset_of;
use std::path::Path;
use std::process::Command;

use kilim_plugin_abi::{self as abi, importer};

/// Assertions about a type: its size, and where its fields are.
macro_rules! layout {
    ($text:ident, $rust:ty, $c:literal, { $($field:ident = $name:literal),* $(,)? }) => {
        $text += &format!("_Static_assert(sizeof({}) == {}, \"size\");\n", $c, size_of::<$rust>());
        $(
            $text += &format!(
                "_Static_assert(offsetof({}, {}) == {}, \"{}\");\n",
                $c, $name, offset_of!($rust, $field), $name
            );
        )*
    };
}

#[test]
fn the_header_says_what_the_types_say() {
    let mut text = String::from("#include \"kilim_importer.h\"\n");
    layout!(text, abi::Message, "KilimMessage", { text = "text", capacity = "capacity", node = "node" });
    layout!(text, abi::Tensor, "KilimTensor", {
        name = "name", dtype = "dtype", rank = "rank", shape = "shape", data = "data", bytes = "bytes",
    });
    layout!(text, abi::Attribute, "KilimAttribute", {
        name = "name", kind = "kind", count = "count", values = "values",
    });
    layout!(text, abi::Node, "KilimNode", {
        name = "name", domain = "domain", op = "op", attribute_count = "attribute_count",
        attributes = "attributes", input_count = "input_count", inputs = "inputs",
        output_count = "output_count", outputs = "outputs",
    });
    layout!(text, abi::Cost, "KilimCost", { flops = "flops", bytes = "bytes" });
    layout!(text, abi::DtypeGrade, "KilimDtypeGrade", { dtype = "dtype", grade = "grade" });
    layout!(text, abi::Description, "KilimDescription", {
        device = "device", dtype_count = "dtype_count", dtypes = "dtypes", alignment = "alignment",
        max_tensor_bytes = "max_tensor_bytes", max_arena_bytes = "max_arena_bytes",
        flops_per_second = "flops_per_second", bytes_per_second = "bytes_per_second",
        kernel_start = "kernel_start", transfer_start = "transfer_start",
        transfer_bytes_per_second = "transfer_bytes_per_second", layout_count = "layout_count",
        layouts = "layouts", dynamic_shapes = "dynamic_shapes", half = "half", quantized = "quantized",
        memory = "memory", handle_kind_count = "handle_kind_count", handle_kinds = "handle_kinds",
    });
    layout!(text, abi::HandleKind, "KilimHandleKind", { kind = "kind", name = "name" });
    layout!(text, abi::Handle, "KilimHandle", {
        kind = "kind", value = "value", offset = "offset", bytes = "bytes",
    });
    layout!(text, abi::Subgraph, "KilimSubgraph", {
        tensor_count = "tensor_count", tensors = "tensors", escapes = "escapes", step_count = "step_count",
        steps = "steps",
    });
    layout!(text, abi::Rewrite, "KilimRewrite", { this = "self", refuse = "refuse", replace = "replace" });
    layout!(text, abi::OptionInfo, "KilimOption", {
        name = "name", kind = "kind", initial = "initial", meaning = "meaning",
        choice_count = "choice_count", choices = "choices",
    });
    layout!(text, abi::Setting, "KilimSetting", { name = "name", value = "value" });
    layout!(text, abi::Slot, "KilimSlot", {
        tensor = "tensor", place = "place", offset = "offset", of = "of", key = "key",
    });
    layout!(text, abi::Step, "KilimStep", { node = "node", inputs = "inputs", outputs = "outputs" });
    layout!(text, abi::Stage, "KilimStage", {
        tensor_count = "tensor_count", tensors = "tensors", step_count = "step_count", steps = "steps",
        part_count = "part_count", parts = "parts", arena_bytes = "arena_bytes",
        algorithms = "algorithms",
    });
    layout!(text, abi::Task, "KilimTask", {
        kind = "kind", backend = "backend", to = "to", part = "part", executable = "executable",
    });
    layout!(text, abi::ContextOptions, "KilimContextOptions", {
        threads = "threads", spare_memory = "spare_memory", layout = "layout",
        dynamic_shapes = "dynamic_shapes", half = "half", quantized = "quantized", timers = "timers",
        setting_count = "setting_count", settings = "settings", queue = "queue",
    });
    layout!(text, abi::Output, "KilimOutput", { dtype = "dtype", rank = "rank", shape = "shape" });
    layout!(text, abi::Operator, "KilimOperator", {
        domain = "domain", name = "name", this = "self", infer = "infer",
    });
    layout!(text, abi::Backend, "KilimBackend", {
        version = "version", size = "size", this = "self", describe = "describe", supports = "supports",
        create_context = "create_context", release_context = "release_context", prepare = "prepare",
        release_executable = "release_executable", write = "write", run = "run", read = "read",
        begin = "begin", end = "end", bytes = "bytes", operator_count = "operator_count",
        operators = "operators", allocate = "allocate", release = "release", bind = "bind",
        scratch_bytes = "scratch_bytes", tensor_bytes = "tensor_bytes", option_count = "option_count",
        options = "options", set_timing = "set_timing", times = "times", submit = "submit", wait = "wait",
        copy = "copy", keep = "keep", use_kept = "use", read_kept = "read_kept",
        release_kept = "release_kept", save_cache = "save_cache", load_cache = "load_cache",
        is_lost = "is_lost", reopen = "reopen", optimise = "optimise", evaluate = "evaluate", attach = "attach",
        node_layout = "node_layout", choice = "choice", schedule = "schedule", replica = "replica",
        replicate = "replicate", is_packed = "is_packed",
        import_memory = "import_memory", keep_in = "keep_in", write_kept = "write_kept", queue = "queue",
    });
    layout!(text, abi::Host, "KilimHost", { version = "version", size = "size", release = "release" });
    layout!(text, importer::Dim, "KilimDim", { size = "size", symbol = "symbol" });
    layout!(text, importer::Input, "KilimInput", {
        name = "name", dtype = "dtype", rank = "rank", dims = "dims",
    });
    layout!(text, importer::Operation, "KilimOperation", {
        name = "name", domain = "domain", op = "op", attribute_count = "attribute_count",
        attributes = "attributes", input_count = "input_count", inputs = "inputs",
        output_count = "output_count", outputs = "outputs",
    });
    layout!(text, importer::Metadata, "KilimMetadata", {
        name = "name", description = "description", producer = "producer",
        producer_version = "producer_version", domain = "domain", version = "version",
        entry_count = "entry_count", keys = "keys", texts = "texts",
    });
    layout!(text, importer::File, "KilimFile", {
        size = "size", this = "self", name = "name", bytes = "bytes", byte_count = "byte_count",
        beside = "beside",
    });
    layout!(text, importer::Graph, "KilimGraph", {
        size = "size", this = "self", input = "input", constant = "constant", node = "node",
        output = "output", model = "model", begin_body = "begin_body", end_body = "end_body",
        metadata = "metadata",
    });
    layout!(text, importer::Importer, "KilimImporter", {
        version = "version", size = "size", this = "self", probe = "probe", load = "load",
    });
    text += &format!(
        "_Static_assert(KILIM_UNTYPED == {}, \"untyped\");\n",
        importer::UNTYPED
    );
    text += &format!(
        "_Static_assert(KILIM_IMPORTER_VERSION == {}, \"version\");\n",
        importer::VERSION
    );
    text += &format!(
        "_Static_assert(KILIM_BACKEND_VERSION == {}, \"version\");\n",
        abi::VERSION
    );
    text += &format!(
        "_Static_assert(KILIM_MAX_RANK == {}, \"rank\");\n",
        abi::MAX_RANK
    );
    let source = Path::new(env!("CARGO_TARGET_TMPDIR")).join("layout.c");
    std::fs::write(&source, text).unwrap();
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../include");
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_string());
    let mut command = Command::new(compiler);
    command
        .args(["-std=c11", "-fsyntax-only", "-I"])
        .arg(include)
        .arg(source);
    assert!(command.status().unwrap().success());
}
