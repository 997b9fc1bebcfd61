"""Sequences of tensors and optional values, made, changed and taken apart again in one go."""

import numpy as np
from operators import operator
from values import BOOL, INT32, INT64, TYPES, Skip, Value, held
from onnx import helper


def index(b, at, length):
    """A place in a sequence, perhaps from the end."""
    at = at - length if b.chance(0.3) else at
    return b.fresh(b.pick([INT64, INT32]), np.array(at), constant=0.6)


def constructed(b):
    first = b.tensor((b.moved_kind(),), rank=(0, 3), specials=True, elements=300)
    items = [first]
    for _ in range(b.random.randint(0, 3)):
        shape = first.shape if b.chance(0.5) else b.shape(first.rank, first.rank, 300)
        items.append(b.tensor((first.kind,), shape=shape, specials=True))
    return b.hold("SequenceConstruct", items, first.kind, items)


def empty(b):
    kind = b.moved_kind()
    return b.hold("SequenceEmpty", [], kind, [], dtype=kind)


def part(x, at, axis):
    """A piece of a value, in a value of its own that has no name."""
    array = held(x.kind, x.array[at])
    return Value(None, x.kind, array, None if x.error is None else x.error[at])


def split(b):
    x = b.tensor((b.moved_kind(),), rank=(1, 3), specials=True, elements=300)
    shown, axis = b.axis(x.rank)
    n = x.shape[axis]
    if n == 0:
        raise Skip("nothing to split")
    at = lambda first, last: (*[slice(None)] * axis, slice(first, last))
    style = b.random.random()
    inputs, attributes = [x], {"axis": shown}
    if style < 0.35:
        keep = b.random.randint(0, 1)
        attributes["keepdims"] = keep
        places = [(*[slice(None)] * axis, slice(i, i + 1) if keep else i) for i in range(n)]
    elif style < 0.65:
        size = b.random.randint(1, n)
        inputs.append(b.fresh(b.pick([INT64, INT32]), np.array(size), constant=0.7))
        places = [at(i, min(i + size, n)) for i in range(0, n, size)]
    else:
        cuts = sorted(b.random.randint(0, n) for _ in range(b.random.randint(0, 3)))
        sizes = np.diff([0, *cuts, n])
        inputs.append(b.ints(sizes.tolist(), b.pick([INT64, INT32])))
        places = [at(i, j) for i, j in zip([0, *cuts], [*cuts, n])]
    return b.hold("SplitToSequence", inputs, x.kind, [part(x, p, axis) for p in places], **attributes)


def changed(b, held, kind):
    """The sequence after an insertion or a removal."""
    items = list(held.items)
    if items and b.chance(0.4):
        at = b.random.randrange(len(items))
        inputs = [held]
        if b.chance(0.7):
            inputs.append(index(b, at, len(items)))
        else:
            at = len(items) - 1
        del items[at]
        return b.hold("SequenceErase", inputs, kind, items)
    shape = items[0].shape if items and b.chance(0.6) else b.shape(0, 3, 100)
    if items and len(shape) != items[0].rank:
        shape = items[0].shape
    new = b.tensor((kind,), shape=shape, specials=True)
    inputs = [held, new]
    at = len(items)
    if items and b.chance(0.6):
        at = b.random.randrange(len(items))
        inputs.append(index(b, at, len(items)))
    items.insert(at, new)
    return b.hold("SequenceInsert", inputs, kind, items)


def ended(b, held, kind):
    """A tensor of a sequence."""
    items = held.items
    style = b.random.random()
    if not items or style < 0.15:
        return b.add("SequenceLength", [held], [(INT64, np.array(len(items)), None)])
    if style < 0.6:
        at = b.random.randrange(len(items))
        result = (kind, items[at].array, items[at].error)
        return b.add("SequenceAt", [held, index(b, at, len(items))], [result])
    rank = items[0].rank
    new = b.random.randint(0, 1) if len({v.shape for v in items}) == 1 else 0
    shown, axis = b.axis(rank + new)
    if not new and len({v.shape[:axis] + v.shape[axis + 1:] for v in items}) != 1:
        raise Skip("they do not fit")
    function = np.stack if new else np.concatenate
    array = function([v.array for v in items], axis)
    error = None
    if any(v.error is not None for v in items):
        error = function([v.slack for v in items], axis)
    attributes = {"axis": shown}
    if new or b.chance(0.3):
        attributes["new_axis"] = new
    b.add("ConcatFromSequence", [held], [(kind, array, error)], **attributes)


@operator("SequenceConstruct", "SequenceEmpty", "SplitToSequence", weight=2)
def sequence(b, op):
    if b.opset < 11:
        raise Skip("no sequences")
    held = {"SequenceConstruct": constructed, "SequenceEmpty": empty, "SplitToSequence": split}[op](b)
    kind = next(k for k, name in TYPES.items() if f"seq({name})" == held.type)
    for _ in range(b.random.randint(0, 3)):
        held = changed(b, held, kind)
    for _ in range(b.random.randint(1, 2)):
        ended(b, held, kind)


@operator("Optional")
def optional(b, op):
    if b.opset < 15:
        raise Skip("no optional values")
    x = b.tensor((b.moved_kind(),), rank=(0, 3), specials=True, elements=300)
    if b.chance(0.25):
        declared = helper.make_tensor_type_proto(x.kind, None)
        held = b.hold(op, [], x.kind, [], "optional(%s)", type=declared)
        return b.add("OptionalHasElement", [held], [(BOOL, np.array(False), None)])
    held = b.hold(op, [x], x.kind, [x], "optional(%s)")
    if b.chance(0.5):
        b.add("OptionalHasElement", [held], [(BOOL, np.array(True), None)])
    b.add("OptionalGetElement", [held], [(x.kind, x.array, x.error)])
