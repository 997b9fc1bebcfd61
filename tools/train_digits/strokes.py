"""Handwritten digits as pen strokes, drawn at random and rendered to 28x28 images.

A digit is a list of strokes, each a polyline in a unit box (x to the right, y down). Every call draws one of the ways
in which people write that digit, with its own proportions. What follows is what MNIST's makers and Kilim's page do to a
drawing: scale its box to 20x20 keeping the aspect, and put its centre of mass into the middle of 28x28.
"""
from __future__ import annotations

import numpy as np

SIZE = 28
BOX = 20.0


def smooth(points, steps: int = 8) -> np.ndarray:
    """A Catmull-Rom curve through control points."""
    p = np.asarray(points, dtype=np.float64)
    p = np.concatenate([2 * p[:1] - p[1:2], p, 2 * p[-1:] - p[-2:-1]])
    t = np.linspace(0, 1, steps, endpoint=False)[:, None]
    parts = []
    for a, b, c, d in zip(p[:-3], p[1:-2], p[2:-1], p[3:], strict=True):
        parts.append(0.5 * (2 * b + (c - a) * t + (2 * a - 5 * b + 4 * c - d) * t**2 + (3 * b - a - 3 * c + d) * t**3))
    return np.concatenate([*parts, p[-2:-1]])


def arc(cx, cy, rx, ry, start, end, steps: int = 24) -> np.ndarray:
    """Part of an ellipse; angles in turns, 0 to the right, growing clockwise on the screen."""
    a = np.linspace(start, end, steps) * 2 * np.pi
    return np.stack([cx + rx * np.cos(a), cy + ry * np.sin(a)], axis=1)


def zero(r):
    start, turn = r.uniform(-0.5, 0.1), r.uniform(0.93, 1.12) * r.choice([-1, 1])
    strokes = [arc(0.5, 0.5, r.uniform(0.22, 0.48), 0.5, start, start + turn, 40)]
    if r.random() < 0.06:
        strokes.append(np.array([[0.75, 0.15], [0.25, 0.85]]))
    return strokes


def one(r):
    lean = r.normal(0, 0.08)
    bar = np.array([[0.5 + lean, 0.0], [0.5 - lean, 1.0]])
    kind = r.random()
    if kind < 0.45:
        return [bar]
    flag = np.array([bar[0] + [-r.uniform(0.12, 0.35), r.uniform(0.1, 0.32)], bar[0]])
    strokes = [np.concatenate([flag, bar[1:]])]
    if kind > 0.75:
        half = r.uniform(0.15, 0.34)
        strokes.append(np.array([bar[1] + [-half, 0], bar[1] + [half, 0]]))
    return strokes


def two(r):
    w = r.uniform(0.55, 0.85)
    head = arc(w / 2, 0.27, w / 2, 0.27, r.uniform(-0.55, -0.42), r.uniform(0.02, 0.1))
    foot = r.uniform(0.88, 1.0)
    if r.random() < 0.3:  # a loop at the lower left
        tail = smooth([head[-1], [w * 0.55, 0.66], [0.12, 0.95], [0.03, 0.85], [0.2, 0.8], [w * 0.6, 0.95], [w * 1.1, foot]])
        return [np.concatenate([head, tail[1:]])]
    neck = smooth([head[-1], [w * r.uniform(0.6, 0.75), 0.6], [0.0, r.uniform(0.94, 1.0)]])
    end = [[w * r.uniform(0.95, 1.2), foot]]
    return [np.concatenate([head, neck[1:], end])]


def three(r):
    w, waist = r.uniform(0.5, 0.75), r.uniform(0.42, 0.52)
    inner = w * r.uniform(0.25, 0.55)
    low = smooth([[inner, waist], [w * 0.85, waist + 0.06], [w, 0.72], [w * 0.8, 0.95], [w * 0.4, 1.0], [0.0, r.uniform(0.78, 0.93)]])
    if r.random() < 0.2:  # a flat top
        return [np.concatenate([[[0.0, 0.03], [w * 0.9, 0.0], [inner, waist]], low[1:]])]
    top = smooth([[r.uniform(0, 0.1), r.uniform(0.08, 0.2)], [w * 0.4, 0.0], [w * 0.85, 0.08], [w * 0.9, 0.27], [w * 0.7, waist - 0.06], [inner, waist]])
    return [np.concatenate([top, low[1:]])]


def four(r):
    bar, x = r.uniform(0.55, 0.72), r.uniform(0.5, 0.68)
    right = x + r.uniform(0.08, 0.28)
    if r.random() < 0.5:  # closed: the diagonal meets the upright at the top
        lead = r.uniform(-0.06, 0.02)
        return [np.array([[x + lead, 0.0], [0.0, bar], [right, bar + r.normal(0, 0.02)]]), np.array([[x, r.uniform(0.0, 0.06)], [x + r.normal(0, 0.03), 1.0]])]
    left = r.uniform(0.0, 0.15)
    hook = smooth([[left, 0.0], [left - 0.04, bar * 0.6], [left + 0.02, bar], [x, bar + r.normal(0, 0.03)], [right, bar - 0.01]]) if r.random() < 0.5 else np.array([[left, 0.0], [0.0, bar], [right, bar]])
    return [hook, np.array([[x + r.uniform(-0.02, 0.08), r.uniform(0.0, 0.3)], [x + r.normal(0, 0.03), 1.0]])]


def five(r):
    w, neck = r.uniform(0.5, 0.75), r.uniform(0.36, 0.48)
    left = r.uniform(0.02, 0.16)
    bowl = smooth([[left - 0.02, neck], [w * 0.5, neck - r.uniform(0.0, 0.1)], [w * 0.95, neck + 0.14], [w * 0.95, 0.78], [w * 0.55, 1.0], [0.0, r.uniform(0.84, 0.97)]])
    top = [w * r.uniform(0.85, 1.15), r.normal(0.0, 0.03)]
    if r.random() < 0.5:
        return [np.concatenate([[top, [left, 0.0]], bowl])]
    return [np.concatenate([[[left, 0.02]], bowl]), np.array([[left, r.uniform(-0.02, 0.04)], top])]


def six(r):
    w, loop = r.uniform(0.45, 0.72), r.uniform(0.42, 0.6)
    down = smooth([[w * r.uniform(0.55, 1.05), 0.0], [w * 0.3, 0.22], [0.02, 0.58], [0.02, 0.76], [w * 0.22, 0.97]])
    ring = smooth([down[-1], [w * 0.6, 1.0], [w, 0.8], [w * 0.9, loop + 0.08], [w * 0.55, loop], [w * 0.18, loop + 0.12], [0.03, loop + r.uniform(0.18, 0.26)]])
    return [np.concatenate([down, ring[1:]])]


def seven(r):
    w, foot = r.uniform(0.5, 0.8), r.uniform(0.05, 0.45)
    start = [[0.0, r.uniform(0.0, 0.06)]]
    if r.random() < 0.25:
        start = [[0.0, r.uniform(0.1, 0.22)], [0.02, 0.0]]
    corner = [w, r.uniform(-0.03, 0.04)]
    if r.random() < 0.5:
        leg = smooth([corner, [w * 0.7, 0.4], [w * foot + 0.02, 1.0]])
    else:
        leg = np.array([corner, [w * foot, 1.0]])
    strokes = [np.concatenate([start, leg])]
    if r.random() < 0.3:
        y = r.uniform(0.42, 0.6)
        strokes.append(np.array([[w * 0.2, y + r.normal(0, 0.03)], [w * 0.98, y + r.normal(0, 0.03)]]))
    return strokes


def eight(r):
    top, low, waist = r.uniform(0.17, 0.27), r.uniform(0.23, 0.34), r.uniform(0.42, 0.52)
    if r.random() < 0.35:  # two rings
        return [arc(0.35, waist / 2, top, waist / 2, -0.25, 0.78, 26), arc(0.35, (1 + waist) / 2, low, (1 - waist) / 2, -0.25, 0.78, 26)]
    c, lead = 0.35, r.uniform(0.5, 1.0)
    path = [[c + top * lead, waist * 0.3], [c, 0.0], [c - top, waist * 0.45], [c, waist], [c + low, (1 + waist) / 2], [c, 1.0],
            [c - low, (1 + waist) / 2 + 0.02], [c, waist + 0.02], [c + top, waist * 0.5], [c + top * r.uniform(0.3, 0.95), waist * r.uniform(0.02, 0.3)]]
    path = np.array(path)
    if r.random() < 0.5:
        path[:, 0] = 2 * c - path[:, 0]
    return [smooth(path)]


def nine(r):
    w, low = r.uniform(0.42, 0.68), r.uniform(0.4, 0.56)
    ring = smooth([[w, r.uniform(0.1, 0.25)], [w * 0.6, 0.0], [w * 0.12, 0.1], [0.0, low * 0.6], [w * 0.3, low], [w * 0.75, low * 0.85], [w * 0.98, r.uniform(0.12, 0.22)]])
    kind = r.random()
    if kind < 0.45:
        tail = np.array([ring[-1], [w * r.uniform(0.75, 1.05), 1.0]])
    elif kind < 0.75:
        tail = smooth([ring[-1], [w * 1.0, 0.5], [w * 0.75, 0.8], [w * r.uniform(0.2, 0.5), 1.0]])
    else:  # a tail that bends back to the left
        tail = smooth([ring[-1], [w * 1.02, 0.6], [w * 0.85, 0.92], [w * 0.4, 1.0], [0.02, r.uniform(0.82, 0.94)]])
    return [np.concatenate([ring, tail[1:]])]


DIGITS = (zero, one, two, three, four, five, six, seven, eight, nine)


def resample(points: np.ndarray, gap: float = 0.05) -> np.ndarray:
    """Points at equal distances along a polyline."""
    step = np.hypot(*np.diff(points, axis=0).T)
    along = np.concatenate([[0.0], np.cumsum(step)])
    n = max(2, int(np.ceil(along[-1] / gap)) + 1)
    at = np.linspace(0, along[-1], n)
    return np.stack([np.interp(at, along, points[:, 0]), np.interp(at, along, points[:, 1])], axis=1)


def distort(strokes, r, strength: float):
    """One hand's slant, proportions and unsteadiness, the same field for all strokes."""
    shear, turn = r.normal(0.08, 0.16) * strength, r.normal(0, 0.09) * strength
    stretch = np.exp(r.normal(0, 0.14) * strength)
    rotate = np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
    matrix = rotate @ np.array([[stretch, -shear], [0, 1]])
    waves = [(r.normal(0, 0.022 * strength, 2), r.uniform(1.5, 6.5, 2), r.uniform(0, 2 * np.pi)) for _ in range(4)]
    ends = r.normal(0, 0.02 * strength, (len(strokes), 2))
    out = []
    for stroke, shift in zip(strokes, ends, strict=True):
        p = resample(stroke) + shift
        p = p + sum(np.sin(p @ k + phase)[:, None] * amplitude for amplitude, k, phase in waves)
        p = p + np.cumsum(r.normal(0, 0.004 * strength, p.shape), axis=0)
        out.append(p @ matrix.T)
    return out


def render(strokes, r, noise: bool = True) -> np.ndarray:
    """Ink of a round pen: 1 within the radius of a stroke, falling to 0 over one to three pixels."""
    radius = r.uniform(0.75, 2.7)
    points = np.concatenate(strokes)
    low, high = points.min(axis=0), points.max(axis=0)
    scale = (BOX * np.exp(r.normal(0, 0.04)) - 2 * radius) / max((high - low).max(), 1e-6)
    strokes = [stroke * scale for stroke in strokes]
    middle = np.concatenate([(s[1:] + s[:-1]) / 2 for s in strokes])
    weight = np.concatenate([np.hypot(*np.diff(s, axis=0).T) for s in strokes])
    centre = (middle * weight[:, None]).sum(axis=0) / weight.sum()
    offset = (SIZE - 1) / 2 - centre + r.normal(0, 0.4, 2)
    a = np.concatenate([s[:-1] for s in strokes]) + offset
    b = np.concatenate([s[1:] for s in strokes]) + offset
    y, x = np.mgrid[0:SIZE, 0:SIZE]
    pixel = np.stack([x.ravel(), y.ravel()], axis=1).astype(np.float32)[:, None, :]
    a, b = a.astype(np.float32)[None], b.astype(np.float32)[None]
    d, to = b - a, pixel - a
    t = np.clip((to * d).sum(-1) / np.maximum((d * d).sum(-1), 1e-9), 0, 1)
    distance = np.sqrt(((to - t[..., None] * d) ** 2).sum(-1))
    pressure = 1 + r.normal(0, 0.12) * np.linspace(-1, 1, distance.shape[1], dtype=np.float32)
    edge = r.uniform(0.6, 2.8)
    image = np.clip((radius * pressure - distance) / edge + 0.5, 0, 1).max(axis=1).reshape(SIZE, SIZE)
    if noise:
        image = image * r.uniform(0.75, 1.0)
        if r.random() < 0.3:
            image = np.clip(image + r.normal(0, r.uniform(0.01, 0.08), image.shape), 0, 1)
    return image


def draw(digit: int, seed, strength: float = 1.0, noise: bool = True) -> np.ndarray:
    """One image of `digit`, float32 in 0..1, ink bright on black; the seed alone decides it."""
    r = np.random.default_rng(seed)
    return render(distort(DIGITS[digit](r), r, strength), r, noise).astype(np.float32)


def batch(count: int, seed: int, strength=1.0):
    """`count` images [count,28,28] and their labels, digits in turn."""
    labels = np.arange(count) % 10
    strengths = np.broadcast_to(strength, count)
    images = np.stack([draw(int(d), (seed, i), float(s)) for i, (d, s) in enumerate(zip(labels, strengths, strict=True))])
    return images, labels
