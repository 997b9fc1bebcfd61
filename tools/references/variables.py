"""Models of TensorFlow and Keras that keep tensors from run to run, and what LiteRT makes of several runs of each.

    python tools/references/variables.py

Needs tensorflow, ai-edge-litert, numpy and onnx (for the files of the tensors).
"""

import numpy as np
import tensorflow as tf
from ai_edge_litert.interpreter import Interpreter

from common import Cases

cases = Cases("variables")
random = np.random.default_rng(30)
tf.random.set_seed(30)


def case(name, converter, inputs, **tolerance):
    """Runs of a model behind each other."""
    converter.experimental_enable_resource_variables = True
    model = converter.convert()
    interpreter = Interpreter(model_content=model)
    interpreter.allocate_tensors()
    sets = []
    for values in inputs:
        for detail, value in zip(interpreter.get_input_details(), values, strict=True):
            interpreter.set_tensor(detail["index"], value)
        interpreter.invoke()
        outputs = [interpreter.get_tensor(d["index"]).copy() for d in interpreter.get_output_details()]
        sets.append((values, outputs))
    cases.add_sets(name, "tflite", model, sets, **tolerance)


def of_module(module, function):
    return tf.lite.TFLiteConverter.from_concrete_functions([function.get_concrete_function()], module)


def floats(*shape):
    return random.normal(size=shape).astype(np.float32)


class Sums(tf.Module):
    """Two sums, one of which is read before and after it changes, and a variable that only stays."""

    def __init__(self):
        super().__init__()
        self.sum = tf.Variable([1.0, 2.0, 3.0])
        self.runs = tf.Variable(0)
        self.factor = tf.Variable([2.0, 0.5, -1.0])

    @tf.function(input_signature=[tf.TensorSpec([3])])
    def __call__(self, x):
        before = self.sum.read_value()
        self.sum.assign_add(x)
        self.sum.assign(self.sum * self.factor)
        self.runs.assign_add(1)
        return before + 0.0, self.sum + self.factor, self.runs + 0


sums = Sums()
case("sums", of_module(sums, sums.__call__), [[floats(3)] for _ in range(4)], rtol=1e-6)


class Window(tf.Module):
    """A convolution over a window that moves on with each frame, as networks that listen have it."""

    def __init__(self):
        super().__init__()
        self.frames = tf.Variable(tf.zeros([1, 5, 4]))
        self.filters = tf.constant(floats(3, 4, 6))

    @tf.function(input_signature=[tf.TensorSpec([1, 1, 4])])
    def __call__(self, frame):
        window = tf.concat([self.frames[:, 1:], frame], 1)
        self.frames.assign(window)
        return tf.nn.relu(tf.nn.conv1d(window, self.filters, 1, "VALID"))


window = Window()
case("window", of_module(window, window.__call__), [[floats(1, 1, 4)] for _ in range(7)], rtol=1e-5, atol=1e-5)


def quantized():
    """The same in bytes: what a variable holds is quantised."""
    window = Window()
    converter = of_module(window, window.__call__)
    converter.optimizations = [tf.lite.Optimize.DEFAULT]
    converter.representative_dataset = lambda: ([floats(1, 1, 4)] for _ in range(50))
    converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
    converter.inference_input_type = converter.inference_output_type = tf.int8
    # The reference may round to the neighbour.
    frames = [random.integers(-128, 128, (1, 1, 4), np.int8) for _ in range(7)]
    case("window_int8", converter, [[frame] for frame in frames], atol=1.0)


quantized()


def recurrent(name, layer, **options):
    """A layer whose state Keras keeps from batch to batch; the loop over its steps is in the file, or written out."""
    inputs = tf.keras.Input(batch_shape=(2, 3, 5))
    outputs = layer(7, stateful=True, return_sequences=True, **options)(inputs)
    model = tf.keras.Model(inputs, tf.keras.layers.Dense(4)(outputs))
    converter = tf.lite.TFLiteConverter.from_keras_model(model)
    case(name, converter, [[floats(2, 3, 5)] for _ in range(4)], rtol=1e-5, atol=1e-5)


recurrent("keras_lstm", tf.keras.layers.LSTM)
recurrent("keras_gru", tf.keras.layers.GRU)
recurrent("keras_lstm_unrolled", tf.keras.layers.LSTM, unroll=True)
cases.write()
