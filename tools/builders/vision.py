"""Networks of torchvision with random weights: written as ONNX, and timed on PyTorch and onnxruntime.

    python tools/builders/vision.py write FOLDER [NAME ...]
    python tools/builders/vision.py torch [NAME ...]             # on a CUDA device, layer by layer and as a CUDA graph
    python tools/builders/vision.py onnxruntime FOLDER THREADS [NAME ...]

Times are medians in milliseconds. Kilim's are those of `kilim bench FOLDER/NAME.onnx`.
"""

import pathlib
import statistics
import sys
import time

NETWORKS = {
    "resnet50": "resnet50",
    "mobilenet_v2": "mobilenet_v2",
    "squeezenet1_1": "squeezenet1_1",
    "densenet121": "densenet121",
    "shufflenet": "shufflenet_v2_x1_0",
    "convnext_tiny": "convnext_tiny",
    "vit_b_16": "vit_b_16",
}
PICTURE = (1, 3, 224, 224)
WARM_UP, RUNS = 5, 20


def network(name):
    import torch
    import torchvision

    torch.manual_seed(1)
    return getattr(torchvision.models, NETWORKS[name])().eval()


def median(run):
    times = []
    for _ in range(WARM_UP + RUNS):
        start = time.perf_counter()
        run()
        times.append((time.perf_counter() - start) * 1e3)
    return statistics.median(times[WARM_UP:])


def write(folder, *names):
    import torch

    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for name in names or NETWORKS:
        file = folder / f"{name}.onnx"
        torch.onnx.export(network(name), torch.randn(PICTURE), str(file), input_names=["x"], opset_version=17, dynamo=False)
        print(file)


def on_torch(*names):
    import torch

    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    for name in names or NETWORKS:
        net, x = network(name).cuda(), torch.randn(PICTURE, device="cuda")

        def done(run):
            run()
            torch.cuda.synchronize()

        with torch.inference_mode():
            layers = median(lambda: done(lambda: net(x)))
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                net(x)
            whole = median(lambda: done(graph.replay))
        print(f"{name}: {layers:.2f}, as a graph {whole:.2f}")


def on_onnxruntime(folder, threads, *names):
    import numpy
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = int(threads)
    options.inter_op_num_threads = 1
    x = numpy.random.default_rng(1).standard_normal(PICTURE, dtype="float32")
    for name in names or NETWORKS:
        file = str(pathlib.Path(folder) / f"{name}.onnx")
        session = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
        print(f"{name}: {median(lambda: session.run(None, {'x': x})):.2f}")


if __name__ == "__main__":
    ways = {"write": write, "torch": on_torch, "onnxruntime": on_onnxruntime}
    ways[sys.argv[1]](*sys.argv[2:])
