"""Convolutions and pools, in one to three dimensions."""

import itertools

import numpy as np
from bounds import ELEMENTARY, linear, smooth
from operators import operator
from values import INT8, INT64, UINT8, UNIT, Skip


class Window:
    """A drawn window, its attributes, and the sizes it gives."""

    def __init__(self, b, op, spatial, kernel, dilations=True, ceil=False, auto=True):
        self.kernel, n = kernel, len(spatial)
        plain = b.chance(0.35)
        self.strides = [1 if plain else b.pick([1, 1, 2, 3]) for _ in range(n)]
        self.dilations = [b.pick([1, 1, 1, 2, 3]) if dilations and not plain else 1 for _ in range(n)]
        self.attributes = {}
        if self.strides != [1] * n or b.chance(0.4):
            self.attributes["strides"] = self.strides
        if self.dilations != [1] * n or (dilations and b.chance(0.2)):
            self.attributes["dilations"] = self.dilations
        self.extent = [(k - 1) * d + 1 for k, d in zip(kernel, self.dilations)]
        self.before, self.after = [0] * n, [0] * n
        self.ceil = int(ceil and b.chance(0.4))
        mode = b.pick(["SAME_UPPER", "SAME_LOWER", "VALID"]) if auto and b.chance(0.2) else None
        if mode:
            self.attributes["auto_pad"] = mode
            self.ceil = 0
        self.sizes = []
        if mode in ("SAME_UPPER", "SAME_LOWER"):
            for i, (size, stride, extent) in enumerate(zip(spatial, self.strides, self.extent)):
                out = -(-size // stride)
                total = max((out - 1) * stride + extent - size, 0)
                half = total // 2
                self.before[i] = half if mode == "SAME_UPPER" else total - half
                self.after[i] = total - self.before[i]
                self.sizes.append(out)
        else:
            if mode is None and b.chance(0.7):
                self.before = [b.random.randint(0, k - 1) for k in kernel]
                self.after = [b.random.randint(0, k - 1) for k in kernel] if b.chance(0.4) else list(self.before)
                self.attributes["pads"] = self.before + self.after
            for i, size in enumerate(spatial):
                room = size + self.before[i] + self.after[i] - self.extent[i]
                if room < 0:
                    raise Skip("the window is larger than the input")
                out = (-(-room // self.strides[i]) if self.ceil else room // self.strides[i]) + 1
                # A window that would start in the padding after the input is left out.
                if self.ceil and (out - 1) * self.strides[i] >= size + self.before[i]:
                    out -= 1
                self.sizes.append(out)
        if self.ceil:
            self.attributes["ceil_mode"] = 1
        if min(self.sizes, default=1) <= 0 or int(np.prod(self.sizes)) > 4000:
            raise Skip("no window fits")

    def padded(self, x, fill):
        """The input with its padding, and as much more as windows reach over its end."""
        widths = [(0, 0), (0, 0)]
        for i, size in enumerate(x.shape[2:]):
            reach = (self.sizes[i] - 1) * self.strides[i] + self.extent[i]
            widths.append((self.before[i], max(self.after[i], reach - size - self.before[i])))
        return np.pad(x, widths, constant_values=fill)

    def taps(self, padded):
        """For every element of the kernel, what all windows see there."""
        for tap in itertools.product(*[range(k) for k in self.kernel]):
            at = [slice(None), slice(None)]
            for t, d, s, n in zip(tap, self.dilations, self.strides, self.sizes):
                at.append(slice(t * d, t * d + (n - 1) * s + 1, s))
            yield tap, padded[tuple(at)]


def convolve(x, w, window, groups):
    padded = window.padded(x, 0)
    out = np.zeros((x.shape[0], w.shape[0], *window.sizes), x.dtype)
    split = lambda a: a.reshape(a.shape[0], groups, -1, *a.shape[2:])
    weights = w.reshape(groups, -1, *w.shape[1:])
    result = split(out)
    for tap, seen in window.taps(padded):
        part = weights[(slice(None), slice(None), slice(None), *tap)]
        result += np.einsum("ngc...,gmc->ngm...", split(seen), part)
    return out


def draw_convolution(b, most=17):
    n = b.random.choices([1, 2, 3], [25, 60, 15])[0]
    spatial = tuple(max(b.dim(most if n < 3 else 6), 1) for _ in range(n))
    kernel = [b.pick([1, 1, 2, 3, 3, 3, 4, 5]) if n < 3 else b.pick([1, 2, 3]) for _ in range(n)]
    if b.chance(0.5):
        kernel = [kernel[0]] * n
    style = b.random.random()
    if style < 0.6:
        groups, per_in, per_out = 1, b.dim(), b.dim()
    elif style < 0.8:
        groups, per_in, per_out = b.pick([2, 3, 4, 8, 16]), 1, b.pick([1, 1, 2])
    else:
        groups, per_in, per_out = b.pick([2, 3, 4]), b.pick([1, 2, 4, 5]), b.pick([1, 2, 3, 4])
    per_in, per_out = max(per_in, 1), max(per_out, 1)
    batch = b.pick([1, 1, 2, 3])
    return spatial, kernel, groups, per_in, per_out, batch


@operator("Conv", weight=6)
def conv(b, op):
    spatial, kernel, groups, per_in, per_out, batch = draw_convolution(b)
    kind = b.float_kind()
    x = b.tensor((kind,), shape=(batch, groups * per_in, *spatial))
    window = Window(b, op, spatial, kernel)
    w = b.tensor((kind,), shape=(groups * per_out, per_in, *kernel), low=-1, high=1, constant=0.85)
    inputs = [x, w]
    if b.chance(0.5):
        inputs.append(b.tensor((kind,), shape=(groups * per_out,), constant=0.85))
    values = list(inputs)
    terms = per_in * int(np.prod(kernel)) + 1

    def function(x, w, bias=None):
        out = convolve(x, w, window, groups)
        if bias is not None:
            out = out + bias.reshape(-1, *[1] * len(kernel))
        return out

    # Fast algorithms are stable by the norm of the window, not term by term.
    top = np.max(np.abs(x.array), initial=0) * np.abs(w.array).sum(axis=tuple(range(1, w.rank)))
    if len(inputs) == 3:
        top = top + np.abs(inputs[2].array)
    magnitude = np.broadcast_to(top.reshape(-1, *[1] * len(kernel)), (batch, groups * per_out, *window.sizes))
    result = linear(function, values, kind, terms + 16, magnitude=magnitude)
    attributes = dict(window.attributes)
    if groups > 1 or b.chance(0.2):
        attributes["group"] = groups
    if b.chance(0.7):
        attributes["kernel_shape"] = kernel
    b.add(op, inputs, [(kind, *result)], **attributes)


@operator("ConvTranspose", weight=4)
def conv_transpose(b, op):
    spatial, kernel, groups, per_in, per_out, batch = draw_convolution(b, 9)
    kind = b.float_kind()
    x = b.tensor((kind,), shape=(batch, groups * per_in, *spatial))
    w = b.tensor((kind,), shape=(groups * per_in, per_out, *kernel), low=-1, high=1, constant=0.85)
    n = len(kernel)
    strides = [b.pick([1, 1, 2, 3]) for _ in range(n)]
    dilations = [b.pick([1, 1, 1, 2]) for _ in range(n)]
    extra = [b.random.randint(0, max(s, d) - 1) if b.chance(0.3) else 0 for s, d in zip(strides, dilations)]
    attributes = {}
    if strides != [1] * n or b.chance(0.4):
        attributes["strides"] = strides
    if dilations != [1] * n or b.chance(0.2):
        attributes["dilations"] = dilations
    extent = [(k - 1) * d + 1 for k, d in zip(kernel, dilations)]
    full = [(size - 1) * s + e for size, s, e in zip(spatial, strides, extent)]
    before, after = [0] * n, [0] * n
    style = b.random.random()
    if style < 0.55:
        before = [b.random.randint(0, k - 1) for k in kernel]
        after = [b.random.randint(0, k - 1) for k in kernel] if b.chance(0.4) else list(before)
        attributes["pads"] = before + after
    elif style < 0.75 and b.opset >= 11:
        mode = b.pick(["SAME_UPPER", "SAME_LOWER"])
        attributes["auto_pad"] = mode
        for i in range(n):
            total = full[i] + extra[i] - spatial[i] * strides[i]
            if total < 0:
                raise Skip("SAME would have to add")
            half = total // 2
            before[i] = half if mode == "SAME_UPPER" else total - half
            after[i] = total - before[i]
    if any(extra):
        attributes["output_padding"] = extra
    sizes = [f + e - p - q for f, e, p, q in zip(full, extra, before, after)]
    if min(sizes) <= 0 or int(np.prod(sizes)) > 3000:
        raise Skip("nothing is left")
    inputs = [x, w]
    if b.chance(0.5):
        inputs.append(b.tensor((kind,), shape=(groups * per_out,), constant=0.85))

    def function(x, w, bias=None):
        out = np.zeros((batch, groups, per_out, *[f + e for f, e in zip(full, extra)]), x.dtype)
        left = x.reshape(batch, groups, per_in, *spatial)
        right = w.reshape(groups, per_in, per_out, *kernel)
        for tap in itertools.product(*[range(k) for k in kernel]):
            at = [slice(None)] * 3
            at += [slice(t * d, t * d + (m - 1) * s + 1, s) for t, d, s, m in zip(tap, dilations, strides, spatial)]
            out[tuple(at)] += np.einsum("ngc...,gcm->ngm...", left, right[(slice(None), slice(None), slice(None), *tap)])
        out = out.reshape(batch, groups * per_out, *out.shape[3:])
        out = out[(slice(None), slice(None), *[slice(p, p + s) for p, s in zip(before, sizes)])]
        return out if bias is None else out + bias.reshape(-1, *[1] * n)

    result = linear(function, inputs, kind, per_in * int(np.prod(kernel)) + 8)
    if groups > 1 or b.chance(0.2):
        attributes["group"] = groups
    if b.chance(0.7):
        attributes["kernel_shape"] = kernel
    b.add(op, inputs, [(kind, *result)], **attributes)


@operator("MaxPool", "AveragePool", "LpPool", weight=3)
def pool(b, op):
    n = b.random.choices([1, 2, 3], [25, 60, 15])[0]
    spatial = tuple(max(b.dim(17 if n < 3 else 6), 1) for _ in range(n))
    kernel = [b.pick([1, 2, 2, 3, 3, 4, 5]) for _ in range(n)]
    kinds = (b.float_kind(),)
    if op == "MaxPool" and b.chance(0.15):
        kinds = (b.pick([INT8, UINT8]),)
    x = b.tensor(kinds, shape=(b.pick([1, 1, 2]), max(b.dim(9), 1), *spatial), exact=op == "MaxPool" and b.chance(0.5))
    dilated = b.opset >= {"MaxPool": 10, "AveragePool": 19, "LpPool": 18}[op]
    ceil = b.opset >= {"MaxPool": 10, "AveragePool": 10, "LpPool": 18}[op]
    window = Window(b, op, spatial, kernel, dilated, ceil)
    attributes = dict(window.attributes, kernel_shape=kernel)
    kind = x.kind
    if op == "MaxPool":
        low = -np.inf if x.is_float else np.iinfo(x.array.dtype).min
        best = first = error = None
        plain = np.arange(int(np.prod(spatial)), dtype=np.int64).reshape(1, 1, *spatial)
        order = int(b.chance(0.1))
        if order:
            plain = np.arange(plain.size, dtype=np.int64).reshape(1, 1, *reversed(spatial)).transpose(0, 1, *range(n + 1, 1, -1))
        base = np.arange(x.shape[0] * x.shape[1], dtype=np.int64).reshape(*x.shape[:2], *[1] * n) * int(np.prod(spatial))
        places = window.padded(np.broadcast_to(plain, x.shape) + base, -1)
        inside = window.padded(np.ones(x.shape, bool), False)
        slack = None if x.error is None else window.padded(x.error, 0)
        for (tap, seen), (_, place), (_, real) in zip(
            window.taps(window.padded(x.array, low)), window.taps(places), window.taps(inside)
        ):
            if best is None:
                best, first, found = np.where(real, seen, low), np.where(real, place, -1), real.copy()
            else:
                better = real & ((seen > best) | ~found)
                best, first, found = np.where(better, seen, best), np.where(better, place, first), found | real
        if not found.all():
            raise Skip("a window of padding alone")
        if slack is not None:
            error = np.max([s for _, s in window.taps(slack)], axis=0)
        results = [(kind, best, error)]
        if x.error is None and b.opset >= 8 and b.chance(0.4):
            results.append((INT64, first, None))
            if order:
                attributes["storage_order"] = 1
        return b.add(op, [x], results, **attributes)
    if op == "AveragePool":
        include = b.random.randint(0, 1) if b.opset >= 7 else 0
        if include:
            attributes["count_include_pad"] = 1
        ones = np.ones((1, 1, *spatial))
        if include:
            ones = np.pad(ones, [(0, 0), (0, 0), *zip(window.before, window.after)], constant_values=1)
            whole = np.zeros(window.padded(np.zeros((1, 1, *spatial)), 0).shape)
            cut = tuple(slice(0, min(p, q)) for p, q in zip(ones.shape, whole.shape))
            whole[cut] = ones[cut]
            ones = whole
        else:
            ones = window.padded(ones, 0)
        counts = sum(seen for _, seen in window.taps(ones))
        if (counts == 0).any():
            raise Skip("a window of padding alone")
        if window.ceil and include and b.opset < 19:
            raise Skip("what a window over the end counts was settled in opset 19")

        def function(v):
            return sum(seen for _, seen in window.taps(window.padded(v, 0))) / counts

        result = linear(function, [x], kind, int(np.prod(kernel)) + 2)
        return b.add(op, [x], [(kind, *result)], **attributes)
    p = b.pick([1, 2, 2, 3])
    if p != 2 or b.chance(0.4):
        attributes["p"] = p

    def function(v):
        return [sum(np.abs(seen) ** p for _, seen in window.taps(window.padded(v, 0))) ** (1 / p)]

    array, error = smooth(function, [x], kind, b.numbers, 16 + int(np.prod(kernel)))[0]
    # The root of a sum near nothing.
    error = error + ELEMENTARY * UNIT[kind] * np.abs(array)
    b.add(op, [x], [(kind, array, error)], **attributes)


@operator("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")
def global_pool(b, op):
    n = b.pick([1, 2, 2, 3])
    x = b.tensor(shape=(b.pick([1, 2, 3]), max(b.dim(), 1), *[max(b.dim(9), 1) for _ in range(n)]))
    axes = tuple(range(2, x.rank))
    count = int(np.prod(x.shape[2:]))
    if op == "GlobalMaxPool":
        error = None if x.error is None else x.error.max(axis=axes, keepdims=True)
        return b.add(op, [x], [(x.kind, x.array.max(axis=axes, keepdims=True), error)])
    if op == "GlobalAveragePool":
        result = linear(lambda v: v.mean(axis=axes, keepdims=True), [x], x.kind, count)
        return b.add(op, [x], [(x.kind, *result)])
    p = b.pick([1, 2, 3])
    function = lambda v: [(np.abs(v) ** p).sum(axis=axes, keepdims=True) ** (1 / p)]
    array, error = smooth(function, [x], x.kind, b.numbers, 16 + count)[0]
    b.add(op, [x], [(x.kind, array, error + ELEMENTARY * UNIT[x.kind] * np.abs(array))], p=p)


@operator("LRN")
def local_response(b, op):
    x = b.tensor(shape=(b.pick([1, 2]), max(b.dim(9), 1), max(b.dim(5), 1), max(b.dim(5), 1)))
    size = b.pick([1, 3, 5, 2, 4])
    alpha, beta, bias = (float(np.float32(b.random.uniform(*r))) for r in ((0.0001, 0.5), (0.4, 1), (0.8, 2)))

    def function(v):
        out = np.zeros_like(v)
        channels = v.shape[1]
        for c in range(channels):
            low, high = max(0, c - (size - 1) // 2), min(channels - 1, c + -(-(size - 1) // 2))
            out[:, c] = (v[:, low : high + 1] ** 2).sum(axis=1)
        return [v / (bias + alpha / size * out) ** beta]

    array, error = smooth(function, [x], x.kind, b.numbers, ELEMENTARY)[0]
    b.add(op, [x], [(x.kind, array, error)], size=size, alpha=alpha, beta=beta, bias=bias)
