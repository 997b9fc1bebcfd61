"""Writes language models with random weights as onnxruntime-genai's model builder does.

    python tools/builders/build.py FOLDER [NAME ...]

makes FOLDER/NAME for each name of `models.py` (all but those of 135 M parameters, unless they are named): `model.onnx` with its
`model.onnx.data`, `genai_config.json`, and a tokenizer. Weights are seeded.
"""

import json
import pathlib
import subprocess
import sys
import tempfile

import torch
import transformers

import tokenizer
from models import MODELS


def checkpoint(model, folder):
    """What the builder reads: the config, random weights and a tokenizer."""
    words = tokenizer.write(folder, model.sizes["vocab_size"])
    config = getattr(transformers, model.config)(**{**model.sizes, **words})
    torch.manual_seed(7)
    network = getattr(transformers, model.architecture)(config).eval()
    with torch.no_grad():
        for name, weight in network.named_parameters():
            # Larger than at the start of a training: the scores of words lie apart, so that the best one is no accident.
            if weight.dim() > 1:
                weight.mul_(4.0)
            elif "norm" in name:
                weight.add_(torch.randn_like(weight) * 0.1)
    network.save_pretrained(folder)


def build(name, folder):
    model = MODELS[name]
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        source = scratch / "source"
        source.mkdir()
        checkpoint(model, source)
        builder = [sys.executable, "-m", "onnxruntime_genai.models.builder"]
        command = [*builder, "-i", source, "-o", folder, "-p", model.precision, "-e", "cpu", "-c", scratch / "cache"]
        if model.options:
            command += ["--extra_options", *model.options]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def main(folder, *names):
    folder = pathlib.Path(folder)
    for name in names or [name for name in MODELS if "135m" not in name]:
        build(name, folder / name)
        files = {file.name: file.stat().st_size for file in sorted((folder / name).iterdir())}
        print(name, json.dumps(files), flush=True)


main(*sys.argv[1:])
