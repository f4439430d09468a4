"""The two sides of T.copy: whole tiles, windows that start somewhere, ranges."""

import ast
import random
from dataclasses import dataclass

from .expr import integer_value, is_known, names_in, text_of
from .types import Buffer


@dataclass
class Region:
    buffer: Buffer
    starts: list  # of every dim
    extents: list  # of every dim: a number where a range is written, None where an index is
    whole: bool  # the name alone


def read(evaluator, node):
    """A Region, or refused."""
    base = evaluator.value(node.value if isinstance(node, ast.Subscript) else node)
    if not isinstance(base, Buffer):
        evaluator.source.refuse(node, "T.copy is between tensors and tiles")
    if not isinstance(node, ast.Subscript):
        return Region(base, [0] * base.rank, [None] * base.rank, True)
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    if len(parts) != base.rank:
        evaluator.source.refuse(node, f"{base.name} has {base.rank} dims, and {len(parts)} are given")
    starts, extents = [], []
    for part, dim in zip(parts, base.shape):
        start, extent = _range(evaluator, part, dim) if isinstance(part, ast.Slice) else (evaluator.integer(part), None)
        starts.append(start)
        extents.append(extent)
    return Region(base, starts, extents, False)


def _range(evaluator, node, dim):
    if node.step is not None:
        evaluator.source.refuse(node, "a range in T.copy has no step")
    start = evaluator.integer(node.lower) if node.lower else 0
    stop = evaluator.integer(node.upper) if node.upper else dim
    extent = difference(stop, start)
    if extent is None:
        evaluator.source.refuse(node, f"how long the range from {text_of(start)} to {text_of(stop)} is must be known when the "
                                "kernel is compiled; give its start alone, the tile says how long it is")
    return start, extent


def difference(a, b):
    """a - b if it is the same number whatever the names in it stand for, else None. Tried on a few values: two
    different polynomials of low degree agree on none of them but by a freak of chance."""
    if is_known(a, b):
        return a - b
    text = f"({text_of(a)}) - ({text_of(b)})"
    names = names_in(text)
    if names is None:
        return None
    numbers = random.Random(1)
    results = {integer_value(text, {name: numbers.randrange(1, 1 << 20) for name in names}) for _ in range(6)}
    return results.pop() if len(results) == 1 else None


def window(region, shape):
    """The text of a region whose extents are `shape`, those of the other side; raises ValueError where they do not fit.
    The last dims run, and those where a range says so."""
    if region.whole and list(region.buffer.shape) == list(shape):
        return region.buffer.name
    rest = list(shape)
    marks = [False] * len(region.starts)
    ranges = sum(extent is not None for extent in region.extents)
    for d in reversed(range(len(marks))):
        extent = region.extents[d]
        if extent is not None:
            ranges -= 1
            if not rest or rest[-1] != extent:
                raise ValueError(f"dim {d} of {region.buffer.name} runs over {extent} elements, the other side over "
                                 f"{rest[-1] if rest else 'none'}")
        elif not rest or len(rest) <= ranges or (rest[-1] != 1 and any(e is not None for e in region.extents)):
            continue
        marks[d] = True
        rest.pop()
    if rest:
        raise ValueError(f"{region.buffer.name} has not as many dims as the other side, {list(shape)}")
    offsets = [text_of(start) + (":" if mark else "") for start, mark in zip(region.starts, marks)]
    return f"{region.buffer.name}[{', '.join(offsets)}]"


def extents_of(region):
    """The extents that a region has by itself; None: the other side says."""
    if region.whole:
        return list(region.buffer.shape) if region.buffer.scope != "tensor" else None
    ranges = [extent for extent in region.extents if extent is not None]
    return ranges or None
