"""From the body of a kernel and its operands to the text of a tile program."""

import ast
from dataclasses import dataclass, field

from .expr import Expr, is_known, names_in, text_of
from .statements import Body
from .types import Buffer
from .words import WORDS


@dataclass
class Program:
    """A tile program that came from Python."""

    name: str
    text: str
    operands: list  # of Buffer and of scalars, pairs of name and Dtype, in the order of the function
    dims: list  # names of the dims that the launch gives
    source: object  # Source
    lines: list = field(repr=False, default_factory=list)  # of the Python file, one for each line of the text

    @property
    def tensors(self):
        return [o for o in self.operands if isinstance(o, Buffer)]

    def explain(self, error):
        """The library's error at its place in the Python source, if it has one there."""
        if error.span is None or not 1 <= error.span.line <= len(self.lines):
            return error
        line = self.text.split("\n")[error.span.line - 1].strip()
        try:
            self.source.refuse_line(self.lines[error.span.line - 1], f"{error.message} (in the tile program: {line})")
        except SyntaxError as refused:
            return refused


def is_kernel(node, evaluator):
    """Whether the statement is `with T.Kernel(...)`."""
    return (isinstance(node, ast.With) and isinstance(node.items[0].context_expr, ast.Call)
            and evaluator.value(node.items[0].context_expr.func) is WORDS["Kernel"])


def translate(source, node, scope, operands, name):
    """The Program of a `with T.Kernel(...)` statement; `scope` has what is around it, the operands too."""
    body = Body(source, scope)
    item = node.items[0]
    if len(node.items) > 1:
        source.refuse(node, "T.Kernel stands alone in its with statement")
    with source.at(item.context_expr):
        axes, threads = _grid(body, item)
    for statement in node.body:
        body.statement(statement)
    header = [(line, source.line_of(node)) for line in _declarations(source, node, operands, name)]
    attributes = f" threads={threads}" if threads else ""
    if body.order and len(axes) > 1:
        attributes += f" order={body.order}"
    header.append((f"  launch {', '.join(axes)}{attributes} {{", source.line_of(node)))
    end = source.line_of(node)
    lines = [*header, *body.lines, ("  }", end), ("}", end)]
    return Program(name, "\n".join(text for text, _ in lines) + "\n", operands, _dims(operands), source,
                   [line for _, line in lines])


def _grid(body, item):
    """The axes of the launch and its threads; the indices become names of the body."""
    source, call = body.source, item.context_expr
    named = {k.arg: k.value for k in call.keywords}
    threads = body.evaluate.known(named.pop("threads"), "threads") if "threads" in named else None
    if named:
        source.refuse(call, f"T.Kernel takes the grid and threads, not {', '.join(map(str, named))}")
    if threads is not None and not (isinstance(threads, int) and threads > 0):
        source.refuse(call, f"threads={threads!r}: how many threads a block has is a number from 1 on")
    if not 1 <= len(call.args) <= 3:
        source.refuse(call, "T.Kernel takes one to three extents of the grid")
    targets = item.optional_vars
    targets = targets.elts if isinstance(targets, (ast.Tuple, ast.List)) else [targets]
    if len(targets) != len(call.args) or not all(isinstance(t, ast.Name) for t in targets):
        source.refuse(call, f"T.Kernel(...) as names: one for each of the {len(call.args)} extents")
    axes = []
    for target, extent in zip(targets, call.args):
        text = text_of(body.evaluate.integer(extent))
        index = Expr(body.ir_name(target.id), "int", atom=True)
        body.scope.names[target.id] = index
        axes.append(f"{index} in {text}")
    return axes, threads


def _dims(operands):
    """Names of the dims in the shapes, in order."""
    names = []
    for operand in operands:
        for extent in operand.shape if isinstance(operand, Buffer) else []:
            if not is_known(extent):
                names += names_in(text_of(extent))
    return list(dict.fromkeys(names))


def _declarations(source, node, operands, name):
    dims = _dims(operands)
    yield "tl 1.0"
    yield f"kernel {name}({', '.join(d + ': dim' for d in dims)}) {{"
    for operand in operands:
        if not isinstance(operand, Buffer):
            yield f"  in {operand[0]}: {operand[1].ir}"
            continue
        access = "inout" if operand.read and operand.written else "out" if operand.written else "in"
        yield f"  {access} {operand.name}: tensor<{operand.dtype.ir}>[{', '.join(text_of(e) for e in operand.shape)}]"
    if not any(o.written for o in operands if isinstance(o, Buffer)):
        source.refuse(node, "the kernel writes no tensor")
