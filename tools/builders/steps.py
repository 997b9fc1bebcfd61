"""Running a decoder step by step: what it gives of its caches is fed back, so that they grow."""

import json

import numpy as np
import onnx
import onnxruntime

TYPES = {"float": "float32", "float16": "float16", "int64": "int64", "int32": "int32", "bool": "bool"}


def dtype(port):
    return np.dtype(TYPES[port.type.removeprefix("tensor(").removesuffix(")")])


def without_levels(model):
    """The bytes of a model whose products have no accuracy level: onnxruntime computes them in float32."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    for node in copy.graph.node:
        for attribute in [a for a in node.attribute if a.name == "accuracy_level"]:
            node.attribute.remove(attribute)
    return copy.SerializeToString()


def session(model):
    options = onnxruntime.SessionOptions()
    # The builder's models for float16 name dimensions so that onnxruntime takes buffers of other sizes for theirs.
    options.enable_mem_reuse = False
    return onnxruntime.InferenceSession(model, options, ["CPUExecutionProvider"])


def fed_back(name):
    """The input that the output `name` is fed to."""
    return name.replace("present.", "past." if name.endswith(".conv") else "past_key_values.", 1)


class Steps:
    """A decoder in the middle of a text: the feeds of an onnxruntime session of a folder that `build.py` wrote."""

    def __init__(self, folder, session):
        settings = json.loads((folder / "genai_config.json").read_text())["model"]["decoder"]
        # Sizes that the model leaves open.
        window = settings.get("sliding_window", {"window_size": 0, "cache_slack": 0})
        self.sizes = {
            "batch_size": 1,
            "past_sequence_length": 0,
            "past_sliding_length": window["window_size"] + window["cache_slack"],
            "kv_cache_dim": settings["head_size"],
        }
        self.inputs = session.get_inputs()
        self.outputs = [port.name for port in session.get_outputs()]
        self.length = 0
        taken = {fed_back(name) for name in self.outputs}
        self.caches = {port.name: self.empty(port) for port in self.inputs if port.name in taken}

    def empty(self, port):
        return np.zeros([self.sizes.get(d, d) for d in port.shape], dtype(port))

    def feeds(self, words):
        """The feeds for further words, in the order of the model's inputs."""
        total = self.length + len(words)
        known = {
            "input_ids": np.array([words]),
            "attention_mask": np.ones((1, total)),
            "position_ids": np.arange(self.length, total)[None],
        }
        return {p.name: self.caches[p.name] if p.name in self.caches else known[p.name].astype(dtype(p)) for p in self.inputs}

    def fed(self, words, results):
        """Takes the results of a step, by the names of outputs: the caches of the next one."""
        self.length += len(words)
        self.caches = {fed_back(name): results[name] for name in self.outputs if fed_back(name) in self.caches}
