"""Statements in the body of a kernel, as lines of the tile IR."""

import ast

from . import regions
from .dtypes import dtype_of
from .evaluate import Evaluator
from .expr import Expr, is_known, kind_of, stored, text_of
from .types import Buffer, GemmWarpPolicy
from .words import INSTEAD, WORDS, make_swizzled_layout

# What means something else in the tile IR than a name.
_TAKEN = set("if then else and or not in true false on off inf nan bool i8 u8 i16 u16 i32 u32 i64 e4m3 e5m2 f16 bf16 f32 f64 "
             "min max clamp ceildiv abs floor ceil round exp exp2 log log2 sqrt rsqrt tanh erf sigmoid sin cos pow fin parts"
             .split())
_UPDATES = {ast.Add: "+=", ast.Sub: "-=", ast.Mult: "*=", ast.Div: "/="}
# Arguments that change speed only, and nothing here: the compiler decides.
_HINTS = {"coalesced_width", "disable_tma"}
_EVICTIONS = {"evict_normal": "", "evict_first": " evict=first", "evict_last": " evict=last"}
_REDUCTIONS = {WORDS[f"reduce_{op}"]: op for op in ("sum", "max", "min", "absmax")}


class Scope:
    """Names of one block."""

    def __init__(self, parent=None, names=None):
        self.parent, self.names = parent, names if names is not None else {}

    def find(self, name):
        scope = self
        while scope is not None:
            if name in scope.names:
                return scope
            scope = scope.parent
        raise KeyError(name)


class Body:
    """Translates the statements inside of T.Kernel. `outer` is the scope around it; `lines` collects pairs of text and
    the line of the Python file that it came from."""

    def __init__(self, source, outer):
        self.source, self.scope = source, Scope(outer)
        self.top = self.scope
        self.lines, self.depth, self.parallel = [], 1, False
        self.order = None  # of the grid, by T.use_swizzle
        self.evaluate = Evaluator(source, lambda name: self.scope.find(name).names[name], lambda: self.parallel)
        self._calls = {
            WORDS["copy"]: self._copy, WORDS["clear"]: self._clear, WORDS["fill"]: self._fill, WORDS["gemm"]: self._gemm,
            WORDS["use_swizzle"]: self._use_swizzle, WORDS["annotate_layout"]: self._annotate_layout,
            **{word: self._reduce for word in _REDUCTIONS},
        }

    def emit(self, text, node):
        self.lines.append(("  " * (self.depth + 1) + text, self.source.line_of(node)))

    def ir_name(self, name):
        """A name of the tile IR that no open block has."""
        used, scope = set(), self.scope
        while scope is not None:
            used.update(getattr(v, "name", None) or getattr(v, "text", None) for v in scope.names.values()
                        if isinstance(v, (Buffer, Expr)))
            scope = scope.parent
        while name in _TAKEN or name in used:
            name += "_"
        return name

    # ---- Blocks

    def block(self, statements, names=()):
        outer, self.scope = self.scope, Scope(self.scope, dict(names))
        self.depth += 1
        for statement in statements:
            self.statement(statement)
        self.depth -= 1
        self.scope = outer

    def statement(self, node):
        method = getattr(self, "_" + type(node).__name__, None)
        if method is None:
            self.source.refuse(node, f"a kernel has no {type(node).__name__} statement")
        with self.source.at(node):
            method(node)

    def _Pass(self, node):
        pass

    def _Expr(self, node):
        if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            return  # a comment in the form of a string
        if not isinstance(node.value, ast.Call):
            self.source.refuse(node, "an expression by itself does nothing")
        word = self.evaluate.value(node.value.func)
        handler = self._calls.get(word) if word in WORDS.values() else None
        if handler is None:
            name = ast.unparse(node.value.func)
            instead = INSTEAD.get(name.rpartition(".")[2])
            self.source.refuse(node, f"{name} is no statement of a kernel" + (f"; instead: {instead}" if instead else ""))
        if self.parallel:
            self.source.refuse(node, f"{word} works on whole tiles, so it cannot stand in T.Parallel")
        handler(node.value, word)

    def _If(self, node):
        condition = self.evaluate.value(node.test)
        if is_known(condition):
            for statement in node.body if condition else node.orelse:
                self.statement(statement)
            return
        if condition.kind != "bool":
            self.source.refuse(node.test, f"{condition} is no condition: compare it with something")
        self.emit(f"if {condition.text} {{", node)
        self.block(node.body)
        if node.orelse:
            self.emit("} else {", node.orelse[0])
            self.block(node.orelse)
        self.emit("}", node)

    # ---- Loops

    def _For(self, node):
        if node.orelse:
            self.source.refuse(node, "a loop of a kernel has no else")
        if not isinstance(node.iter, ast.Call):
            self.source.refuse(node.iter, "a kernel loops over range, T.serial, T.unroll, T.Pipelined or T.Parallel")
        word = self.evaluate.value(node.iter.func)
        if word is WORDS["Parallel"]:
            self._parallel(node)
        elif word is WORDS["Pipelined"]:
            self._pipelined(node)
        elif word in (range, WORDS["serial"], WORDS["unroll"]):
            start, stop = self._bounds(node.iter)
            kind = "unrolled" if word is WORDS["unroll"] else "serial"
            self._loop(node, kind, f"{text_of(start)}..{text_of(stop)}" if not _is_zero(start) else text_of(stop))
        else:
            self.source.refuse(node.iter, "a kernel loops over range, T.serial, T.unroll, T.Pipelined or T.Parallel")

    def _bounds(self, call):
        if call.keywords or not 1 <= len(call.args) <= 2:
            self.source.refuse(call, f"{ast.unparse(call.func)} takes an end, or a start and an end; there are no steps")
        values = [self.evaluate.integer(a) for a in call.args]
        return (0, values[0]) if len(values) == 1 else values

    def _targets(self, node, count):
        targets = node.target.elts if isinstance(node.target, (ast.Tuple, ast.List)) else [node.target]
        if len(targets) != count or not all(isinstance(t, ast.Name) for t in targets):
            self.source.refuse(node.target, f"this loop gives {count} ind{'ex' if count == 1 else 'ices'}")
        for target in targets:
            self._check_new(target, Expr(target.id, "int"))
        return {t.id: Expr(self.ir_name(t.id), "int", atom=True) for t in targets}

    def _loop(self, node, kind, extent, attributes=""):
        indices = self._targets(node, 1)
        if self.parallel:
            self.source.refuse(node, "a loop in T.Parallel is not supported; give T.Parallel another index, or loop around it")
        self.emit(f"{kind} {next(iter(indices.values()))} in {extent}{attributes} {{", node)
        self.block(node.body, indices)
        self.emit("}", node)

    def _pipelined(self, node):
        named = {k.arg: k.value for k in node.iter.keywords}
        stages = self.evaluate.known(named.pop("num_stages"), "num_stages") if "num_stages" in named else 0
        if named:
            self.source.refuse(node.iter, f"T.Pipelined takes num_stages, not {', '.join(map(str, named))}: the compiler orders "
                               "the steps")
        start, stop = self._bounds(ast.Call(node.iter.func, node.iter.args, []) if node.iter.args else node.iter)
        if not _is_zero(start):
            self.source.refuse(node.iter, "T.Pipelined starts at 0; add the start where the index is used")
        if stages:
            self._loop(node, "pipelined", text_of(stop), f" stages={stages}")
        else:
            self._loop(node, "serial", text_of(stop))

    def _parallel(self, node):
        _only_hints(self.source, node.iter)
        if self.parallel:
            self.source.refuse(node, "T.Parallel in T.Parallel: give one of them all indices")
        extents = [self.evaluate.known(a, "the extent of T.Parallel") for a in node.iter.args]
        if not extents:
            self.source.refuse(node.iter, "T.Parallel takes one extent for each index")
        indices = self._targets(node, len(extents))
        names = ", ".join(i.text for i in indices.values())
        sizes = ", ".join(text_of(e) for e in extents)
        self.emit(f"parallel {names} in " + (f"[{sizes}] {{" if len(extents) > 1 else f"{sizes} {{"), node)
        self.parallel = True
        self.block(node.body, indices)
        self.parallel = False
        self.emit("}", node)

    # ---- Values and elements

    def _Assign(self, node):
        if len(node.targets) > 1:
            self.source.refuse(node, "one assignment has one target")
        target = node.targets[0]
        if isinstance(target, ast.Subscript):
            self._store(node, target, "=", lambda: self.evaluate.number(node.value))
            return
        if self._allocates(node.value):
            self._allocate(node, target)
            return
        value = self.evaluate.value(node.value)
        if isinstance(target, (ast.Tuple, ast.List)):
            if not isinstance(value, (tuple, list)) or len(value) != len(target.elts):
                self.source.refuse(node, f"{len(target.elts)} names are given one value")
            for name, part in zip(target.elts, value):
                self._define(node, name, part)
        else:
            self._define(node, target, value)

    def _define(self, node, target, value):
        if not isinstance(target, ast.Name):
            self.source.refuse(target, "what is assigned to is a name or an element")
        self._check_new(target, value)
        if isinstance(value, Expr):
            name = self.ir_name(target.id)
            self.emit(f"{name} = {value.text}", node)
            value = Expr(name, value.kind, atom=True)
        self.scope.names[target.id] = value

    def _check_new(self, target, value):
        """A kernel's values are fixed. What Python knows may change in the block that it was made in: the kernel need
        not know."""
        try:
            scope = self.scope.find(target.id)
        except KeyError:
            return
        old = scope.names[target.id]
        if scope.parent is None:
            return  # shadows something from around the kernel
        changes = any(isinstance(v, (Expr, Buffer)) for v in (old, value))
        if changes or scope is not self.scope:
            self.source.refuse(target, f"{target.id!r} has a value already, and values in a kernel do not change; keep it in a "
                               "tile, T.alloc_fragment((1,), dtype)")

    def _AugAssign(self, node):
        if not isinstance(node.target, ast.Subscript):
            self.source.refuse(node, "values in a kernel do not change; keep it in a tile, T.alloc_fragment((1,), dtype)")
        op = _UPDATES.get(type(node.op))
        if op is None:
            self.source.refuse(node, "elements are updated by += -= *= /=; write x[i] = x[i] ... for others")
        self._store(node, node.target, op, lambda: self.evaluate.number(node.value))

    def _AnnAssign(self, node):
        self.source.refuse(node, "an annotation says nothing in the body of T.Kernel")

    def _store(self, node, target, op, value):
        buffer = self.evaluate.value(target.value)
        if not isinstance(buffer, Buffer):
            self.source.refuse(target, "elements of tensors and tiles are assigned to")
        alone = not self.parallel
        if alone:
            # One element, whoever has it.
            self.emit(f"parallel {self.ir_name('one')} in 1 {{", node)
            self.parallel, self.depth = True, self.depth + 1
        indices = self.evaluate.indices(buffer, target)
        result = stored(value(), buffer.dtype)
        if op == "/=" and buffer.dtype.kind == "int":
            self.source.refuse(node, "/= divides two ints: write x[i] = x[i] // ...")
        buffer.written = True
        buffer.read = buffer.read or op != "="
        inside = self.evaluate.inside(buffer, indices)
        text = f"{buffer.element(indices)} {op} {text_of(result)}"
        self.emit(text if inside is True else f"if {text_of(inside)} {{ {text} }}", node)
        if alone:
            self.parallel, self.depth = False, self.depth - 1
            self.emit("}", node)

    def _allocates(self, node):
        if not isinstance(node, ast.Call):
            return False
        word = self.evaluate.value(node.func)
        return word in (WORDS["alloc_shared"], WORDS["alloc_fragment"])

    def _allocate(self, node, target):
        if not isinstance(target, ast.Name):
            self.source.refuse(target, "a tile has a name")
        call = node.value
        scope = "shared" if self.evaluate.value(call.func) is WORDS["alloc_shared"] else "fragment"
        arguments = _bind(self.source, call, ["shape", "dtype", "scope"], required=2)
        named = self.evaluate.known(arguments["scope"], "scope") if "scope" in arguments else scope
        if not (isinstance(named, str) and named.startswith(("shared", "local.fragment", scope))):
            self.source.refuse(call, f"scope={named!r}: a tile lies where its T.alloc_ says")
        shape = self.evaluate.known(arguments["shape"], "the shape of a tile")
        shape = list(shape) if isinstance(shape, (tuple, list)) else [shape]
        for extent in shape:
            if not is_known(extent) or kind_of(extent) != "int":
                self.source.refuse(call, f"the extent {extent!r} of a tile must be an int that is known when the kernel is compiled")
        dtype = dtype_of(self.evaluate.known(arguments["dtype"], "dtype"))
        if self.scope is not self.top:
            self.source.refuse(node, "tiles are allocated at the top of T.Kernel, outside of loops and conditions")
        self._check_new(target, buffer := Buffer(self.ir_name(target.id), shape, dtype, scope))
        self.emit(f"{buffer.name} = alloc_{scope}<{dtype.ir}>[{', '.join(map(str, shape))}]", node)
        self.scope.names[target.id] = buffer

    # ---- Operations on tiles

    def _tile(self, node, word):
        buffer = self.evaluate.value(node)
        if not isinstance(buffer, Buffer):
            self.source.refuse(node, f"{word} takes the name of a tile")
        if buffer.scope == "tensor":
            self.source.refuse(node, f"{word} works on tiles, and {buffer.name} is a tensor: T.copy it into T.alloc_shared first")
        return buffer.name

    def _copy(self, call, word):
        _only_hints(self.source, call, also="eviction_policy")
        if len(call.args) != 2:
            self.source.refuse(call, "T.copy takes what is copied and where to")
        source, target = (regions.read(self.evaluate, a) for a in call.args)
        if source.buffer.scope == target.buffer.scope == "tensor":
            self.source.refuse(call, "T.copy from tensor to tensor: go by way of a tile")
        shape = regions.extents_of(source if source.buffer.scope != "tensor" else target)
        shape = shape or regions.extents_of(source) or regions.extents_of(target)
        if shape is None:
            self.source.refuse(call, "how much is copied must show on one side: a whole tile, or ranges")
        source.buffer.read = target.buffer.written = True
        evict = self._eviction(call) if "tensor" in (source.buffer.scope, target.buffer.scope) else ""
        self.emit(f"copy {regions.window(source, shape)} -> {regions.window(target, shape)}{evict}", call)

    def _eviction(self, call):
        nodes = [keyword.value for keyword in call.keywords if keyword.arg == "eviction_policy"]
        policy = self.evaluate.known(nodes[0], "eviction_policy") if nodes else "evict_normal"
        if policy not in tuple(_EVICTIONS):
            self.source.refuse(call, f"eviction_policy={policy!r} is none of {', '.join(_EVICTIONS)}")
        return _EVICTIONS[policy]

    def _clear(self, call, word):
        arguments = _bind(self.source, call, ["buffer"], required=1)
        self.emit(f"clear {self._tile(arguments['buffer'], word)}", call)

    def _fill(self, call, word):
        arguments = _bind(self.source, call, ["buffer", "value"], required=2)
        value = self.evaluate.number(arguments["value"])
        self.emit(f"fill {self._tile(arguments['buffer'], word)}, {text_of(value)}", call)

    def _gemm(self, call, word):
        arguments = _bind(self.source, call, ["A", "B", "C", "transpose_A", "transpose_B", "policy", "clear_accum"], required=3)
        tiles = [self._tile(arguments.pop(name), word) for name in "ABC"]
        known = {name: self.evaluate.known(node, name) for name, node in arguments.items()}
        policy = known.pop("policy", GemmWarpPolicy.Square)
        if policy not in ("square", "full_row", "full_col"):
            self.source.refuse(call, f"policy={policy!r} is none of T.GemmWarpPolicy.Square, FullRow, FullCol")
        words = [f"gemm {tiles[0]}, {tiles[1]} -> {tiles[2]}"]
        flags = {"transpose_A": "transpose_a", "transpose_B": "transpose_b", "clear_accum": "clear"}
        words += [flag for name, flag in flags.items() if known.get(name)]
        words += [] if policy == "square" else [f"policy={policy}"]
        self.emit(" ".join(words), call)

    def _reduce(self, call, word):
        arguments = _bind(self.source, call, ["buffer", "out", "dim", "clear"], required=2)
        tiles = [self._tile(arguments[name], word) for name in ("buffer", "out")]
        dim = self.evaluate.known(arguments["dim"], "dim") if "dim" in arguments else -1
        clear = self.evaluate.known(arguments["clear"], "clear") if "clear" in arguments else True
        self.emit(f"reduce_{_REDUCTIONS[word]} {tiles[0]} -> {tiles[1]} dim={dim}" + (" clear" if clear else ""), call)

    # ---- Hints

    def _use_swizzle(self, call, word):
        arguments = _bind(self.source, call, ["panel_size", "order", "enable"], required=1)
        known = {name: self.evaluate.known(node, name) for name, node in arguments.items()}
        if known.get("order", "row") not in ("row", "col"):
            self.source.refuse(call, f"order={known['order']!r} is neither \"row\" nor \"col\"")
        if known.get("enable", True):
            self.order = f"{known.get('order', 'row')}({known['panel_size']})"

    def _annotate_layout(self, call, word):
        """Every shared tile is swizzled where that helps, so asking for it changes nothing."""
        layouts = call.args[0] if len(call.args) == 1 and not call.keywords else None
        if not isinstance(layouts, ast.Dict):
            self.source.refuse(call, "T.annotate_layout takes {tile: layout}")
        for key, value in zip(layouts.keys, layouts.values):
            if key is None or not isinstance(self.evaluate.value(key), Buffer):
                self.source.refuse(call, "T.annotate_layout takes {tile: layout}")
            if not (isinstance(value, ast.Call) and self.evaluate.value(value.func) is make_swizzled_layout):
                self.source.refuse(value, "the compiler lays tiles out itself; of layouts only T.layout.make_swizzled_layout(tile) "
                                   "is taken, which it does anyway")


def _is_zero(value):
    return is_known(value) and value == 0


def _only_hints(source, call, also=None):
    for keyword in call.keywords:
        if keyword.arg not in _HINTS and keyword.arg != also:
            source.refuse(call, f"{ast.unparse(call.func)} does not take {keyword.arg}")


def _bind(source, call, names, required):
    """The arguments of a call by name, as nodes."""
    name = ast.unparse(call.func)
    if any(isinstance(a, ast.Starred) for a in call.args) or any(k.arg is None for k in call.keywords):
        source.refuse(call, "a call in a kernel has no * or **")
    if len(call.args) > len(names):
        source.refuse(call, f"{name} takes at most {len(names)} arguments: {', '.join(names)}")
    bound = dict(zip(names, call.args))
    for keyword in call.keywords:
        if keyword.arg not in names:
            source.refuse(call, f"{name} does not take {keyword.arg}; it takes {', '.join(names)}")
        if keyword.arg in bound:
            source.refuse(call, f"{name} is given {keyword.arg} twice")
        bound[keyword.arg] = keyword.value
    for missing in names[:required]:
        if missing not in bound:
            source.refuse(call, f"{name} takes {', '.join(names[:required])}; {missing} is missing")
    return bound
