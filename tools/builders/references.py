"""Small language models of the builder, step by step in onnxruntime, as reference cases (`tests/references/language.zip`).

    python tools/builders/references.py FOLDER

FOLDER is what `build.py` wrote. A prompt of five words is followed by three single ones, or more where a window of words is full then. Products lose their accuracy level: with one,
activations may be rounded to 8 bits, and a sum that differs in its last bit moves a rounded number by a whole step. The products
themselves have cases with and without it (`crates/conform/src/operators/packed.rs`).
"""

import pathlib
import sys

import numpy as np
import onnx

from steps import Steps, session, without_levels

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "references"))
from common import Cases  # noqa: E402

NAMES = ["llama-int4", "llama-int4-asymmetric", "llama-int8", "llama-fp16", "qwen2-int4", "qwen3-int4", "phi3-int4", "smollm3-int4",
         "gemma2-int4", "lfm2-int4", "lfm2moe-int4", "gptoss-fp32"]


def slim(model):
    """The model without what only people read."""
    for node in model.graph.node:
        node.ClearField("doc_string")
        del node.metadata_props[:]
    del model.graph.value_info[:]
    return model


def main(folder):
    cases = Cases("language")
    for name in NAMES:
        built = pathlib.Path(folder) / name
        model = without_levels(slim(onnx.load(built / "model.onnx")))
        runtime = session(model)
        random = np.random.default_rng(11)
        steps, sets = Steps(built, runtime), []
        for count in (5, 1, 1, 1) if steps.sizes["past_sliding_length"] == 0 else (7, 1, 1, 4, 1):
            words = random.integers(4, 384, count).tolist()
            feeds = steps.feeds(words)
            results = runtime.run(None, feeds)
            sets.append((list(feeds.values()), results))
            steps.fed(words, dict(zip(steps.outputs, results)))
        # A model in half precision is computed in single precision by some backends.
        rtol, atol = (5e-3, 5e-3) if name.endswith("fp16") else (1e-4, 1e-5)
        cases.add_sets(name, "onnx", model, sets, rtol=rtol, atol=atol)
    cases.write()


main(*sys.argv[1:])
