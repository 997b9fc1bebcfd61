"""Layers of networks for pictures in float64, as their definitions read: loops over the positions of a window, nothing else. Data is
`[batch, channels, ..]`."""

import itertools

import numpy as np


def padded(x, begins, ends, value=0.0):
    """`x` with numbers around the axes behind the channels."""
    around = [(0, 0), (0, 0), *zip(begins, ends)]
    return np.pad(np.float64(x), around, constant_values=value)


def conv(x, w, bias=None, strides=None, begins=None, ends=None, dilations=None, groups=1):
    """A convolution; weights are `[outputs, inputs / groups, kernel..]`."""
    axes = w.ndim - 2
    strides, dilations = strides or [1] * axes, dilations or [1] * axes
    begins = begins or [0] * axes
    x = padded(x, begins, ends or begins)
    reach = [d * (k - 1) + 1 for d, k in zip(dilations, w.shape[2:])]
    sizes = [(n - r) // s + 1 for n, r, s in zip(x.shape[2:], reach, strides)]
    y = np.zeros((x.shape[0], w.shape[0], *sizes))
    each, outputs = w.shape[1], w.shape[0] // groups
    for tap in itertools.product(*map(range, w.shape[2:])):
        at = tuple(slice(t * d, t * d + s * (n - 1) + 1, s) for t, d, s, n in zip(tap, dilations, strides, sizes))
        part = x[(slice(None), slice(None), *at)]
        for g in range(groups):
            rows = slice(g * outputs, (g + 1) * outputs)
            weights = np.float64(w[(rows, slice(None), *tap)])
            y[:, rows] += np.einsum("oi,ni...->no...", weights, part[:, g * each : (g + 1) * each])
    return y if bias is None else y + np.float64(bias).reshape(1, -1, *[1] * axes)


def deconv(x, w, bias=None, strides=(1, 1), begins=(0, 0), ends=None, dilations=(1, 1), groups=1, added=(0, 0)):
    """A transposed convolution; weights are `[inputs, outputs / groups, h, w]`. Each pixel writes a block, and blocks add up."""
    ends = ends or begins
    each, outputs = w.shape[0] // groups, w.shape[1]
    sizes = [(n - 1) * s + d * (k - 1) + 1 + a for n, s, d, k, a in zip(x.shape[2:], strides, dilations, w.shape[2:], added)]
    y = np.zeros((x.shape[0], outputs * groups, *sizes))
    for h, v in itertools.product(*map(range, x.shape[2:])):
        for a, b in itertools.product(*map(range, w.shape[2:])):
            for g in range(groups):
                own = slice(g * each, (g + 1) * each)
                part = np.float64(x[:, own, h, v]) @ np.float64(w[own, :, a, b])
                y[:, g * outputs : (g + 1) * outputs, h * strides[0] + a * dilations[0], v * strides[1] + b * dilations[1]] += part
    y = y[:, :, begins[0] : sizes[0] - ends[0], begins[1] : sizes[1] - ends[1]]
    return y if bias is None else y + np.float64(bias).reshape(1, -1, 1, 1)


def pool(x, kernel, strides, begins, sizes, mean=False, count=None):
    """Pooling to these sizes. `count` says how many numbers of a window count in a mean, from its unclipped and clipped ends."""
    x = np.float64(x)
    y = np.zeros((*x.shape[:2], *sizes))
    for place in itertools.product(*map(range, sizes)):
        starts = [p * s - b for p, s, b in zip(place, strides, begins)]
        clipped = [(max(a, 0), min(a + k, n)) for a, k, n in zip(starts, kernel, x.shape[2:])]
        window = x[(slice(None), slice(None), *(slice(a, b) for a, b in clipped))]
        axes = tuple(range(2, x.ndim))
        if mean:
            there = count(starts) if count else np.prod([b - a for a, b in clipped])
            y[(slice(None), slice(None), *place)] = window.sum(axes) / there
        else:
            y[(slice(None), slice(None), *place)] = window.max(axes)
    return y


def parts(x, sizes, mean):
    """Pooling into so many windows, which overlap where they do not divide the data."""
    y = np.zeros((*x.shape[:2], *sizes))
    for place in itertools.product(*map(range, sizes)):
        at = tuple(slice(p * n // s, -(-(p + 1) * n // s)) for p, n, s in zip(place, x.shape[2:], sizes))
        window = np.float64(x[(slice(None), slice(None), *at)])
        axes = tuple(range(2, x.ndim))
        y[(slice(None), slice(None), *place)] = window.mean(axes) if mean else window.max(axes)
    return y


def sampled(x, height, width, weights):
    """Rows and columns that are mixed of others: `weights(to, from)` is a matrix `[to, from]`."""
    return np.einsum("ah,bw,nchw->ncab", weights(height, x.shape[2]), weights(width, x.shape[3]), np.float64(x))


def linear(aligned):
    """Weights of linear interpolation, with the corners on each other or not."""

    def of(to, start):
        matrix = np.zeros((to, start))
        for i in range(to):
            at = i * (start - 1) / max(to - 1, 1) if aligned else (i + 0.5) * start / to - 0.5 if to > 1 else 0
            at = min(max(at, 0), start - 1)
            low = int(at)
            matrix[i, low] += 1 - (at - low)
            matrix[i, min(low + 1, start - 1)] += at - low
        return matrix

    return of


def nearest(to, start):
    matrix = np.zeros((to, start))
    for i in range(to):
        matrix[i, int(i * start / to)] = 1
    return matrix


def cubic(to, start):
    """Weights of cubic interpolation with a = -0.75; numbers beyond the border are those of the border."""
    matrix = np.zeros((to, start))
    for i in range(to):
        at = (i + 0.5) * start / to - 0.5
        low = int(np.floor(at))
        t, a = at - low, -0.75
        weights = [
            ((a * (t + 1) - 5 * a) * (t + 1) + 8 * a) * (t + 1) - 4 * a,
            ((a + 2) * t - (a + 3)) * t * t + 1,
            ((a + 2) * (1 - t) - (a + 3)) * (1 - t) * (1 - t) + 1,
        ]
        weights.append(1 - sum(weights))
        for j, weight in enumerate(weights):
            matrix[i, min(max(low - 1 + j, 0), start - 1)] += weight
    return matrix


def softmax(x, axis):
    e = np.exp(np.float64(x) - np.max(x, axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def sigmoid(x):
    return 1 / (1 + np.exp(-np.float64(x)))


def erf(x):
    """The error function by its series, good to float64 for small numbers."""
    x = np.float64(x)
    term, total = x.copy(), x.copy()
    for n in range(1, 60):
        term = -term * x * x / n
        total += term / (2 * n + 1)
    return total * 2 / np.sqrt(np.pi)


def lstm(x, w, r, b, h, c, reverse=False):
    """ONNX's LSTM of one direction: gates in the order i, o, f, c."""
    hidden = r.shape[1]
    out = np.zeros((x.shape[0], x.shape[1], hidden))
    h, c = np.float64(h), np.float64(c)
    for t in range(x.shape[0])[:: -1 if reverse else 1]:
        gates = np.float64(x[t]) @ np.float64(w).T + h @ np.float64(r).T + b[: 4 * hidden] + b[4 * hidden :]
        i, o, f, g = (gates[:, k * hidden : (k + 1) * hidden] for k in range(4))
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        out[t] = h
    return out, h, c


def shuffled(x, groups):
    n, c, *rest = x.shape
    return x.reshape(n, groups, c // groups, *rest).swapaxes(1, 2).reshape(x.shape)
