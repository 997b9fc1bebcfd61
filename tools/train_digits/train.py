#!/usr/bin/env python3
"""Trains the embedded digit model and writes it with its held-out samples into assets/.

    .venv/bin/python tools/train_digits/train.py

About six minutes on one core; the result depends on the seeds alone. Nothing is downloaded: all images are drawn by
strokes.py. The held-out samples come from other seeds and are distorted more widely than most of the training set.
"""
from __future__ import annotations

import argparse
import os
import struct
import sys
import time
import zlib
from pathlib import Path

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import numpy as np  # noqa: E402
import onnx  # noqa: E402
from net import Net  # noqa: E402
from onnx.reference import ReferenceEvaluator  # noqa: E402
from strokes import batch, draw  # noqa: E402

TRAIN_SEED, HELD_OUT_SEED, SAMPLE_SEED, NET_SEED = 1, 2, 3, 4
HELD_OUT = 400
WANTED = 0.97


def train(count: int, epochs: int) -> Net:
    start = time.time()
    r = np.random.default_rng(NET_SEED)
    images, labels = batch(count, TRAIN_SEED, r.uniform(0.5, 2.0, count))
    print(f"{count} images drawn in {time.time() - start:.0f} s", flush=True)
    net, size = Net(NET_SEED), 100
    total = epochs * (count // size)
    for epoch in range(epochs):
        order, losses = r.permutation(count), []
        for i in range(count // size):
            pick = order[i * size : (i + 1) * size]
            done = net.steps / total
            rate = 0.002 * min(1, net.steps / 200 + 0.05) * 0.5 * (1 + np.cos(np.pi * done))
            shift = tuple(int(s) for s in r.integers(-1, 2, 2))
            losses.append(net.step(np.roll(images[pick], shift, axis=(1, 2)), labels[pick], rate))
        print(f"epoch {epoch + 1}: loss {np.mean(losses):.4f}, {time.time() - start:.0f} s", flush=True)
    return net


def png(image: np.ndarray, scale: int) -> bytes:
    """An 8-bit grey PNG, every pixel `scale` pixels wide."""
    rows = np.kron(np.rint(image * 255).astype(np.uint8), np.ones((scale, scale), np.uint8))

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", rows.shape[1], rows.shape[0], 8, 0, 0, 0, 0)
    body = zlib.compress(b"".join(b"\0" + row.tobytes() for row in rows), 9)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", body) + chunk(b"IEND", b"")


def main() -> int:
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("--out", type=Path, default=Path(__file__).resolve().parents[2] / "assets")
    ap.add_argument("--images", type=int, default=40_000)
    ap.add_argument("--epochs", type=int, default=8)
    a = ap.parse_args()
    net = train(a.images, a.epochs)
    strengths = np.random.default_rng(HELD_OUT_SEED).uniform(0.8, 1.8, HELD_OUT)
    images, labels = batch(HELD_OUT, HELD_OUT_SEED, strengths)
    stored = np.rint(images * 255).astype(np.uint8)
    model = net.onnx()
    (scores,) = ReferenceEvaluator(model).run(None, {"image": stored[:, None].astype(np.float32) / 255})
    accuracy = float((scores.argmax(axis=1) == labels).mean())
    print(f"held-out accuracy {accuracy:.4f} on {HELD_OUT} samples")
    if accuracy < WANTED:
        print(f"that is below {WANTED}; nothing was written", file=sys.stderr)
        return 1
    a.out.mkdir(parents=True, exist_ok=True)
    onnx.save(model, a.out / "digits.onnx")
    np.savez_compressed(a.out / "digits-heldout.npz", images=stored, labels=labels.astype(np.uint8))
    for digit in range(10):
        (a.out / f"digit-{digit}.png").write_bytes(png(draw(digit, (SAMPLE_SEED, digit), noise=False), 1))
    print(f"{a.out / 'digits.onnx'}: {(a.out / 'digits.onnx').stat().st_size} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
