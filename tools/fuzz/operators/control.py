"""If, Loop and Scan, with values captured from outside."""

import numpy as np
from bounds import pointwise
from onnx import helper
from operators import operator
from values import BOOL, FLOAT, INT64, Skip, UNIT, proto


def port(name, kind, shape):
    return helper.make_tensor_value_info(name, kind, shape)


@operator("If")
def branches(b, op):
    x = b.tensor((FLOAT,))
    y = b.tensor((FLOAT,), shape=x.shape)
    condition = b.fresh(BOOL, np.array(b.chance(0.5)), constant=0.2)
    name = b.name()
    then_op, else_op = b.pick(["Add", "Mul", "Max"]), b.pick(["Sub", "Min"])
    functions = {"Add": np.add, "Mul": np.multiply, "Max": np.maximum, "Sub": np.subtract, "Min": np.minimum}
    graphs = {}
    for branch, kind in (("then_branch", then_op), ("else_branch", else_op)):
        out = f"{name}_{branch}"
        node = helper.make_node(kind, [x.name, y.name], [out])
        graphs[branch] = helper.make_graph([node], branch, [], [port(out, FLOAT, None)])
    taken = functions[then_op if condition.array else else_op]
    size = np.abs(x.array) + np.abs(y.array)
    result = pointwise(taken, [x, y], FLOAT, 1, size)
    b.add(op, [condition], [(FLOAT, *result)], captures=[x, y], **graphs)


@operator("Loop")
def loop(b, op):
    """Adds a captured value a number of times, and gives every step."""
    if b.opset < 11:
        raise Skip("ranks were told otherwise")
    trips = b.random.randint(0, 4)
    shape = b.shape(0, 3, 300)
    start, step = b.tensor((FLOAT,), shape=shape, exact=True), b.tensor((FLOAT,), shape=shape, exact=True)
    stop = b.random.randint(0, 5)
    name = b.name()
    n = {k: f"{name}_{k}" for k in ("i", "c", "s", "t", "go", "limit", "scan")}
    nodes = [
        helper.make_node("Add", [n["s"], step.name], [n["t"]]),
        helper.make_node("Constant", [], [n["limit"]], value=proto("", INT64, np.array(stop))),
        helper.make_node("Less", [n["i"], n["limit"]], [n["go"]]),
        helper.make_node("Identity", [n["t"]], [n["scan"]]),
    ]
    inputs = [port(n["i"], INT64, []), port(n["c"], BOOL, []), port(n["s"], FLOAT, list(shape))]
    outputs = [port(n["go"], BOOL, []), port(n["t"], FLOAT, list(shape)), port(n["scan"], FLOAT, list(shape))]
    body = helper.make_graph(nodes, "body", inputs, outputs)
    state, seen, go = start.array, [], True
    for i in range(trips):
        if not go:
            break
        state = state + step.array
        seen.append(state)
        go = i < stop
    if not seen:
        raise Skip("the shape of no steps")
    size = (np.abs(start.array) + trips * np.abs(step.array)) * (trips + 2) * UNIT[FLOAT]
    results = [(FLOAT, state, size), (FLOAT, np.stack(seen), np.broadcast_to(size, (len(seen), *shape)))]
    first = b.fresh(BOOL, np.array(True), constant=0.7)
    count = b.fresh(INT64, np.array(trips), constant=0.6)
    b.add(op, [count, first, start], results, captures=[step], body=body)


@operator("Scan")
def scan(b, op):
    """Running sums over an axis."""
    if b.opset < 9:
        raise Skip("scans had batches")
    x = b.tensor((FLOAT,), rank=(1, 3), exact=True)
    if x.shape[0] == 0:
        raise Skip("the shape of no steps")
    start = b.tensor((FLOAT,), shape=x.shape[1:], exact=True)
    backwards = b.random.randint(0, 1)
    name = b.name()
    n = {k: f"{name}_{k}" for k in ("s", "e", "t", "y")}
    nodes = [helper.make_node("Add", [n["s"], n["e"]], [n["t"]]), helper.make_node("Identity", [n["t"]], [n["y"]])]
    inner = list(x.shape[1:])
    body = helper.make_graph(
        nodes, "body", [port(n["s"], FLOAT, inner), port(n["e"], FLOAT, inner)],
        [port(n["t"], FLOAT, inner), port(n["y"], FLOAT, inner)],
    )
    rows = np.flip(x.array, 0) if backwards else x.array
    sums = start.array + np.cumsum(rows, axis=0)
    error = (np.abs(start.array) + np.cumsum(np.abs(rows), axis=0)) * (x.shape[0] + 2) * UNIT[FLOAT]
    attributes = {"num_scan_inputs": 1, "body": body}
    if backwards or b.chance(0.3):
        attributes["scan_input_directions"] = [backwards]
    b.add(op, [start, x], [(FLOAT, sums[-1], error[-1]), (FLOAT, sums, error)], **attributes)
