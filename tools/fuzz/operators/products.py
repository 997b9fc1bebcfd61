"""Matrix products."""

import numpy as np
from bounds import linear, smooth
from operators import operator
from values import DOUBLE, INT32, INT64, Skip


@operator("MatMul", weight=4)
def matmul(b, op):
    whole = b.chance(0.08)
    kind = b.pick([INT32, INT64]) if whole else b.float_kind()
    x = b.tensor((kind,), rank=(1, 4))
    k = x.shape[-1]
    n = b.dim()
    style = b.random.random()
    if style < 0.15:
        shape = (k,)
    elif style < 0.6 or x.rank < 3:
        shape = (k, n)
    else:
        lead = tuple(1 if b.chance(0.25) else m for m in x.shape[:-2])
        shape = (*lead[b.random.randint(0, len(lead)):], k, n)
    y = b.tensor((kind,), shape=shape, constant=0.6)
    exact = np.matmul(x.array, y.array)
    if exact.size > 20000:
        raise Skip("too large")
    if whole:
        return b.add(op, [x, y], [(kind, exact, None)])
    b.add(op, [x, y], [(kind, *linear(np.matmul, [x, y], kind, k))])


@operator("Gemm", weight=3)
def gemm(b, op):
    kind = b.float_kind()
    x = b.tensor((kind,), rank=(2, 2))
    left, right = b.random.randint(0, 1), b.random.randint(0, 1)
    m, k = (x.shape[1], x.shape[0]) if left else x.shape
    n = b.dim()
    y = b.tensor((kind,), shape=(n, k) if right else (k, n), constant=0.7)
    alpha, beta = (b.pick([1.0, 1.0, 0.5, 2.0, -0.25, 0.0]) for _ in range(2))
    attributes = {}
    for name, value, default in (("alpha", alpha, 1), ("beta", beta, 1), ("transA", left, 0), ("transB", right, 0)):
        if value != default or b.chance(0.3):
            attributes[name] = value
    inputs = [x, y]
    if b.opset < 11 or b.chance(0.6):
        shape = b.pick([(n,), (m, n), (1, n), (m, 1), (1,), ()])
        if b.opset < 7:
            shape = (m, n)
        inputs.append(b.tensor((kind,), shape=shape, constant=0.7))

    def function(x, y, c=None):
        x, y = x.T if left else x, y.T if right else y
        out = alpha * (x @ y)
        return out if c is None else out + beta * c

    def weigh(x, y, c=None):
        x, y = x.T if left else x, y.T if right else y
        out = abs(alpha) * (x @ y)
        return out if c is None else out + abs(beta) * c

    b.add(op, inputs, [(kind, *linear(function, inputs, kind, k + 3, weigh))], **attributes)


EQUATIONS = [
    "ij,jk->ik", "ij,jk", "bij,bjk->bik", "bij,bkj->bik", "ij->ji", "ij->", "ii->i", "ii", "i,j->ij",
    "i,i->", "bhid,bhjd->bhij", "bhij,bhjd->bhid", "...ij,...jk->...ik", "ij,ij->ij", "ij,j->i",
    "abc->cab", "abc,cd->abd", "a,b,c->abc", "ij,jk,kl->il", "bijc,bc->bij", "...i->...", "bii->b",
]


@operator("Einsum", weight=2)
def einsum(b, op):
    equation = b.pick(EQUATIONS)
    kind = b.float_kind()
    letters = {}
    dots = tuple(max(b.dim(3), 1) for _ in range(b.random.randint(0, 2)))
    values = []
    for term in equation.split("->")[0].split(","):
        shape = []
        for part in term.replace("...", "."):
            if part == ".":
                shape.extend(dots)
            else:
                shape.append(letters.setdefault(part, b.dim(7)))
        values.append(b.tensor((kind,), shape=tuple(shape), low=-2, high=2))
    terms = int(np.prod(list(letters.values()), dtype=int))
    function = lambda *a: np.asarray(np.einsum(equation, *a))
    shown = equation.replace(",", " , ").replace("->", " -> ") if b.chance(0.2) else equation
    if len(values) == 3:
        array, error = smooth(lambda *a: [function(*a)], values, kind, b.numbers, 16 + terms)[0]
        error = error + (terms + 4) * 2.0**-24 * function(*[np.abs(v.array) for v in values]) * (kind != DOUBLE)
        return b.add(op, values, [(kind, array, error)], equation=shown)
    b.add(op, values, [(kind, *linear(function, values, kind, terms))], equation=shown)
