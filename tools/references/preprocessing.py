"""Pictures resized by Pillow and prepared by torchvision, and sound resampled by scipy: what `kilim/pictures` and `kilim/sound` are held
against.

    python tools/references/preprocessing.py

Needs numpy, pillow, scipy, torch and torchvision (13.0.0, 1.17.1, 2.15.0 and 0.29.2 made the cases). Writes `www/fixtures/preprocessing/`.
"""

import base64
import hashlib
import json
from pathlib import Path

import numpy as np
from PIL import Image
from scipy.signal import resample_poly
from torchvision import transforms
from torchvision.transforms import InterpolationMode

FOLDER = Path(__file__).parents[2] / "www" / "fixtures" / "preprocessing"
FILTERS = {
    "nearest": Image.Resampling.NEAREST,
    "box": Image.Resampling.BOX,
    "bilinear": Image.Resampling.BILINEAR,
    "bicubic": Image.Resampling.BICUBIC,
    "lanczos": Image.Resampling.LANCZOS,
}
SIZES = [
    ((37, 23), (16, 16)),
    ((23, 37), (50, 41)),
    ((640, 480), (224, 224)),
    ((5, 3), (1, 1)),
    ((1, 1), (7, 4)),
    ((100, 60), (100, 30)),
    ((31, 17), (31, 17)),
    ((300, 2), (7, 5)),
]


def noise(count):
    """The highest bytes of a linear congruential generator, which the tests have, too (Numerical Recipes' factors)."""
    state, made = 1, bytearray(count)
    for i in range(count):
        state = (state * 1664525 + 1013904223) & 0xFFFFFFFF
        made[i] = state >> 24
    return bytes(made)


def picture(width, height):
    return Image.frombytes("RGBA", (width, height), noise(width * height * 4)).convert("RGB")


def resized():
    for (width, height), size in SIZES:
        for channels in ["RGB", "gray"]:
            source = picture(width, height).convert("RGB" if channels == "RGB" else "L")
            for name, kind in FILTERS.items():
                made = source.resize(size, kind).tobytes()
                yield {
                    "from": [width, height],
                    "to": size,
                    "channels": channels,
                    "resample": name,
                    "sha256": hashlib.sha256(made).hexdigest(),
                }


def prepared():
    mean, std = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
    for (width, height), shorter, size, mode in [
        ((47, 31), 12, 9, "bilinear"),
        ((31, 47), 12, 9, "bicubic"),
        ((20, 21), 10, 10, "bilinear"),
        ((33, 20), 11, 8, "bicubic"),
        ((40, 40), 13, 10, "bilinear"),
    ]:
        steps = transforms.Compose(
            [
                transforms.Resize(shorter, InterpolationMode(mode)),
                transforms.CenterCrop(size),
                transforms.ToTensor(),
                transforms.Normalize(mean, std),
            ]
        )
        made = steps(picture(width, height)).numpy().astype("<f4")
        yield {
            "from": [width, height],
            "shorter": shorter,
            "size": size,
            "resample": mode,
            "mean": mean,
            "std": std,
            "float32": base64.b64encode(made.tobytes()).decode(),
        }


def resampled():
    for source, target, count in [
        (44100, 16000, 900),
        (48000, 16000, 900),
        (8000, 16000, 300),
        (22050, 16000, 500),
        (16000, 44100, 200),
        (48000, 44100, 300),
        (11025, 16000, 1),
        (16000, 16000, 50),
    ]:
        samples = (np.frombuffer(noise(count), np.uint8).astype(np.float64) - 128) / 128
        made = resample_poly(samples, target, source).astype("<f4")
        yield {"from": source, "to": target, "count": count, "float32": base64.b64encode(made.tobytes()).decode()}


def write(name, cases):
    text = "[\n" + ",\n".join(json.dumps(case) for case in cases) + "\n]\n"
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / name).write_text(text)


write("resized.json", resized())
write("prepared.json", prepared())
write("resampled.json", resampled())
