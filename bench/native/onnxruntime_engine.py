"""One process of onnxruntime: prints `{"load": …, "first": …, "median": …}` in milliseconds.

    python bench/native/onnxruntime_engine.py MODEL.onnx THREADS RUNS INPUTS

INPUTS is what inputs.py has printed. Three runs after the first are not timed.
"""

import json
import sys
from statistics import median
from time import perf_counter

import numpy as np
import onnxruntime

model, threads, runs, inputs = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), json.loads(sys.argv[4])
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = threads
options.inter_op_num_threads = 1
options.log_severity_level = 3
feeds = {item["name"]: np.load(item["file"]) for item in inputs}


def timed(work):
    begun = perf_counter()
    result = work()
    return (perf_counter() - begun) * 1000, result


load, session = timed(lambda: onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"]))
times = [timed(lambda: session.run(None, feeds))[0] for _ in range(4 + runs)]
print(json.dumps({"load": load, "first": times[0], "median": median(times[4:])}))
