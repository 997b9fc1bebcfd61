"""Pictures of every format that ImageDecoder reads, and what onnx's reference implementation makes of
them: Pillow, with libjpeg-turbo and OpenJPEG.

    python tools/references/pictures.py

Needs numpy, onnx and pillow (13.0.0, with libjpeg-turbo 3.2.0 and OpenJPEG 2.5.4, made the cases).
"""

import io

import numpy as np
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator
from PIL import Image

from common import Cases

random = np.random.default_rng(20)


def picture(height, width, channels=3):
    """Waves with noise on them: edges and flat parts in every channel."""
    y, x = np.mgrid[0:height, 0:width]
    waves = [128 + 127 * np.sin((x * (c + 1) + y * (3 - c)) / 7 + c) for c in range(channels)]
    noisy = np.stack(waves, -1) + random.normal(0, 6, (height, width, channels))
    pixels = np.clip(noisy, 0, 255).astype(np.uint8)
    return Image.fromarray(pixels[:, :, 0] if channels == 1 else pixels)


def model(pixel_format):
    node = helper.make_node("ImageDecoder", ["file"], ["picture"], pixel_format=pixel_format)
    channels = 1 if pixel_format == "Grayscale" else 3
    graph = helper.make_graph(
        [node],
        "picture",
        [helper.make_tensor_value_info("file", TensorProto.UINT8, [None])],
        [helper.make_tensor_value_info("picture", TensorProto.UINT8, [None, None, channels])],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


def main():
    cases = Cases("pictures")

    def add(name, image, pixel_format="RGB", atol=0.0, **how):
        file = io.BytesIO()
        image.save(file, **how)
        encoded = np.frombuffer(file.getvalue(), np.uint8)
        made = model(pixel_format)
        outputs = ReferenceEvaluator(made).run(None, {"file": encoded})
        cases.add(name, "onnx", made.SerializeToString(), [encoded], outputs, atol=atol)

    for sampling in ("4:4:4", "4:2:2", "4:2:0"):
        short = sampling.replace(":", "")
        for quality, progressive in ((30, False), (75, True), (100, False)):
            kind = f"jpeg_{short}_{quality}" + ("_progressive" if progressive else "")
            how = {"format": "JPEG", "subsampling": sampling, "quality": quality}
            add(kind, picture(27, 35), progressive=progressive, **how)
        # A single pixel, and one row of blocks that ends within a pair of colours.
        add(f"jpeg_{short}_pixel", picture(1, 1), format="JPEG", subsampling=sampling)
        add(f"jpeg_{short}_thin", picture(3, 41), format="JPEG", subsampling=sampling)
    restart = {"format": "JPEG", "restart_marker_blocks": 2}
    add("jpeg_restart", picture(40, 33), **restart)
    add("jpeg_restart_progressive", picture(40, 33), progressive=True, **restart)
    add("jpeg_rgb", picture(20, 19), format="JPEG", keep_rgb=True)
    add("jpeg_gray", picture(21, 30, 1), "Grayscale", format="JPEG")
    add("jpeg_grayscale", picture(21, 30), "Grayscale", format="JPEG")
    add("jpeg_bgr", picture(21, 30), "BGR", format="JPEG")
    add("jpeg2000", picture(23, 37), format="JPEG2000")
    add("jpeg2000_codestream", picture(23, 37), format="JPEG2000", no_jp2=True)
    add("jpeg2000_tiles", picture(50, 45), format="JPEG2000", tile_size=(32, 16))
    add("jpeg2000_gray", picture(23, 37, 1), "Grayscale", format="JPEG2000")
    # Of this transform the standard leaves the precision open.
    add("jpeg2000_irreversible", picture(23, 37), atol=1.0, format="JPEG2000", irreversible=True)
    add("png", picture(18, 21), format="PNG")
    add("png_bgr", picture(18, 21), "BGR", format="PNG")
    add("png_gray", picture(18, 21, 1), "Grayscale", format="PNG")
    for format in ("BMP", "PPM"):
        add(format.lower(), picture(9, 14), format=format)
    for packed in ("raw", "tiff_lzw", "tiff_adobe_deflate"):
        add(f"tiff_{packed.removeprefix('tiff_')}", picture(9, 14), format="TIFF", compression=packed)
    add("webp", picture(30, 22), format="WEBP")
    add("webp_lossless", picture(30, 22), format="WEBP", lossless=True)
    cases.write()


if __name__ == "__main__":
    main()
