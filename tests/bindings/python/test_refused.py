"""What the translator does not take: each row is a line of a kernel, and what its refusal says. The refusal names the file
and the line that the construct begins in."""

import importlib.util
import pathlib
import sys
import tempfile
import textwrap
import unittest

import tilejit
import tilejit.language as T

# The kernel around the row; HERE is replaced by it.
KERNEL = """\
import math
import tilejit.language as T
config = dict(block=32)
def helper(x):
    return x
M, N = 100, 64
m = T.dynamic("m")
@T.prim_func
def kernel(A: T.Tensor((M, N), "float32"), B: T.Tensor((m, N), "float32"), I: T.Tensor((M,), "int32"), s: T.float32,
           C: T.Tensor((M, N), "float32")):
    with T.Kernel(T.ceildiv(N, 32), T.ceildiv(m, 32), threads=128) as (bx, by):
        tile = T.alloc_shared((32, 32), "float32")
        frag = T.alloc_fragment((32, 32), "float32")
        row = T.alloc_fragment((32,), "float32")
        ints = T.alloc_fragment((32,), "int32")
        T.clear(frag)
        HERE
        T.copy(frag, C[by * 32, bx * 32])
"""

# Statement, and what its refusal says. The marked line is the one that is named where a statement has several.
STATEMENTS = [
    # Names
    ("T.copy(A[by * 32, bx * 32], nowhere)", "unknown name 'nowhere'"),
    ("T.alloc_smem((1,), 'float32')", "T.alloc_smem is not supported"),
    ("v = 1 if undefined else 2", "unknown name 'undefined'"),
    # Words that are not supported, with what would work
    ("v = T.alloc_var('float32')", "T.alloc_var is not supported; instead: keep it in a tile of one element"),
    ("v = T.alloc_local((4,), 'float32')", "T.alloc_local is not supported; instead: keep it in a tile"),
    ("T.print(frag)", "T.print is not supported; instead: tl check"),
    ("T.atomic_add(C[by, bx], 1.0)", "T.atomic_add is not supported; instead: a tile program has atomic_add"),
    ("T.sync_threads()", "T.sync_threads is not supported; instead: leave it out"),
    ("T.cumsum(frag, dim=1)", "T.cumsum is not supported"),
    ("T.reduce_abssum(frag, row)", "instead: T.abs into a tile, then T.reduce_sum"),
    ("for i in T.vectorized(4):\n    pass", "instead: T.Parallel: the compiler vectorizes"),
    ("for i in T.Persistent([4], 4, bx):\n    pass", "T.Persistent is not supported"),
    # Statements of Python
    ("while True:\n    pass", "no While statement"),
    ("for i in [1, 2]:\n    pass", "loops over range, T.serial, T.unroll, T.Pipelined or T.Parallel"),
    ("for i in enumerate(range(3)):\n    pass", "loops over range"),
    ("for i in range(0, 8, 2):\n    pass", "there are no steps"),
    ("for i in range(4):\n    pass\nelse:\n    pass", "has no else"),
    ("for i in range(4):\n    break  # <-", "no Break statement"),
    ("return", "no Return statement"),
    ("assert bx > 0", "no Assert statement"),
    ("try:\n    pass\nfinally:\n    pass", "no Try statement"),
    ("def inner():\n    pass", "no FunctionDef statement"),
    ("with open('x') as f:\n    pass", "no With statement"),
    ("import os", "no Import statement"),
    ("frag", "an expression by itself does nothing"),
    ("x: int = 3", "an annotation says nothing"),
    ("helper(frag)", "helper is no statement of a kernel"),
    ("a = b = 1", "one assignment has one target"),
    ("a, b = 1, 2, 3", "2 names are given one value"),
    # Values do not change
    ("v = bx + 1\nv = v + 1  # <-", "'v' has a value already"),
    ("v = bx\nv += 1  # <-", "values in a kernel do not change"),
    ("v = 1\nfor i in range(4):\n    v = v + 1  # <-", "'v' has a value already"),
    ("frag = T.alloc_fragment((8,), 'float32')", "'frag' has a value already"),
    ("for bx in range(3):\n    pass", "'bx' has a value already"),
    # Expressions
    ("v = bx / 2", "divides two ints: write //"),
    ("v = s // 2", "// is of two ints"),
    ("v = s % 2", "% is of two ints"),
    ("v = bx ** 2", "is of two ints: multiply"),
    ("v = bx << 1", "the operator LShift is not supported"),
    ("v = ~bx", "~ is not supported"),
    ("v = [i for i in range(3)]", "no ListComp expression"),
    ("v = f'{bx}'", "no JoinedStr expression"),
    ("v = lambda x: x", "no Lambda expression"),
    ("v = max(s, 1)", "max is Python's and of known values; in a kernel: T.max"),
    ("v = math.exp(s)", "math.exp is Python's and of known values; in a kernel: T.exp"),
    ("v = helper(1)", "helper cannot be called in a kernel: compute it before"),
    ("v = (bx > 1) + 1", "is a condition, not a number"),
    ("v = 1 if s else 2", "is no condition"),
    ("v = bx and by", "is no condition"),
    ("v = s.item()", "a value of the kernel has astype, not item"),
    ("v = tile.strides", "has shape and dtype, not strides"),
    ("v = config[bx]", "is known in the kernel only, and indexes a Python object"),
    ("v = 1 // 0", "integer division or modulo by zero"),
    ("v = frag + 1", "frag is a whole tile; name an element of it"),
    ("v = 1 << 70", "LShift"),
    ("v = bx + 2 ** 70", "more than 64 bits"),
    ("v = T.float33(bx)", "T.float33 is not supported"),
    ("v = T.cast(s, 'float33')", "'float33' is no dtype; there are bfloat16"),
    ("v = T.infinity('int32')", "T.int32 has no infinity"),
    ("v = T.exp(*[1])", "has no * or **"),
    ("v = T.ceildiv(s, 2)", "T.ceildiv is of two ints"),
    ("v = bx is None", "Is compares what Python knows only"),
    ("if s:\n    pass", "s is no condition: compare it with something"),
    # Elements
    ("v = frag[0, 0]", "an element of the fragment frag is read only in T.Parallel"),
    ("v = tile[0]", "tile has 2 dims, and 1 indices are given"),
    ("v = tile[0:4, 0]", "a range stands only in T.copy"),
    ("v = tile[s, 0]", "s is no int"),
    ("v = A[0, 64]", "A has 64 elements in a dim that is indexed by 64"),
    ("tile[0, 0] //= 2", "elements are updated by += -= *= /="),
    ("ints[0] /= 2", "/= divides two ints"),
    ("s[0] = 1", "elements of tensors and tiles are assigned to"),
    ("tile.x = 1", "what is assigned to is a name or an element"),
    # T.Parallel
    ("for i, j in T.Parallel(32):\n    pass", "this loop gives 1 index"),
    ("for i in T.Parallel(m):\n    pass", "the extent of T.Parallel must be known when the kernel is compiled; m is not"),
    ("for i in T.Parallel(4):\n    for j in T.Parallel(4):  # <-\n        pass", "give one of them all indices"),
    ("for i in T.Parallel(4):\n    for j in range(4):  # <-\n        pass", "a loop in T.Parallel"),
    ("for i in T.Parallel(4):\n    T.clear(frag)  # <-", "so it cannot stand in T.Parallel"),
    ("for i in T.Parallel(4, loop_layout=1):\n    pass", "T.Parallel does not take loop_layout"),
    ("for i in T.Parallel():\n    pass", "one extent for each index"),
    ("v = T.Parallel(4)", "T.Parallel is no expression"),
    # T.Pipelined
    ("for k in T.Pipelined(4, num_stages=2, order=[0]):\n    pass", "T.Pipelined takes num_stages, not order"),
    ("for k in T.Pipelined(1, 4):\n    pass", "starts at 0"),
    ("for k in T.Pipelined(4, num_stages=bx):\n    pass", "num_stages must be known"),
    # Allocation
    ("x = T.alloc_shared((m, 4), 'float32')", "the extent m of a tile must be an int that is known"),
    ("x = T.alloc_shared((4,))", "T.alloc_shared takes shape, dtype; dtype is missing"),
    ("x = T.alloc_shared((4,), 'float33')", "'float33' is no dtype"),
    ("x = T.alloc_fragment((4,), 'float32', scope='global')", "a tile lies where its T.alloc_ says"),
    ("for i in range(4):\n    x = T.alloc_fragment((4,), 'float32')  # <-", "allocated at the top of T.Kernel"),
    ("x, y = T.alloc_shared((4,), 'float32')", "a tile has a name"),
    # T.copy
    ("T.copy(A, C)", "from tensor to tensor: go by way of a tile"),
    ("T.copy(A[0, 0])", "takes what is copied and where to"),
    ("T.copy(A[0], frag)", "A has 2 dims, and 1 are given"),
    ("T.copy(A[0:16, 0:32], frag)", "dim 0 of A runs over 16 elements, the other side over 32"),
    ("T.copy(I[0], frag)", "I has not as many dims as the other side, [32, 32]"),
    ("T.copy(A[0:32:2, 0], frag)", "a range in T.copy has no step"),
    ("T.copy(A[0:m, 0:32], frag)", "how long the range from 0 to m is must be known"),
    ("T.copy(A[by * 32, bx * 32], frag, stride=2)", "T.copy does not take stride"),
    ("T.copy(A[by * 32, bx * 32], frag, eviction_policy='never')", "'never' is none of evict_normal, evict_first, evict_last"),
    ("T.copy(A[by * 32, bx * 32], frag, eviction_policy=bx)", "eviction_policy must be known"),
    ("T.copy(s, frag)", "between tensors and tiles"),
    # T.gemm and the others
    ("T.gemm(A, tile, frag)", "T.gemm works on tiles, and A is a tensor: T.copy it into T.alloc_shared first"),
    ("T.gemm(tile, tile)", "T.gemm takes A, B, C; C is missing"),
    ("T.gemm(tile, tile, frag, policy='half')", "is none of T.GemmWarpPolicy.Square, FullRow, FullCol"),
    ("T.gemm(tile, tile, frag, transpose_B=bx)", "transpose_B must be known"),
    ("T.gemm(tile, tile, frag, wg_wait=-1)", "T.gemm does not take wg_wait; it takes A, B, C"),
    ("T.gemm(tile, tile, frag, A=tile)", "T.gemm is given A twice"),
    ("T.gemm(tile[0, 0], tile, frag)", "T.gemm takes the name of a tile"),
    ("T.clear(A)", "T.clear works on tiles, and A is a tensor"),
    ("T.fill(frag, frag)", "frag is a whole tile"),
    ("T.reduce_sum(frag, row, dim=bx)", "dim must be known"),
    ("T.reduce_sum(frag, row, axis=1)", "T.reduce_sum does not take axis; it takes buffer, out, dim, clear"),
    ("T.use_swizzle(4, order='diagonal')", 'is neither "row" nor "col"'),
    ("T.annotate_layout({tile: helper(tile)})", "of layouts only T.layout.make_swizzled_layout"),
    ("T.annotate_layout(tile)", "takes {tile: layout}"),
]

# Found when the tile program is compiled: the line is named all the same.
LIBRARY = [
    ("T.reduce_sum(frag, row, dim=5)", "dim"),
    ("T.gemm(tile, tile, ints)", "ints"),
    ("T.reduce_max(frag, frag, dim=1)", "frag"),
]

# Whole files, the line that is named, and what is said.
FILES = [
    ("@T.prim_func\ndef k(A):\n    pass", 2, "'A' is an operand: annotate it with T.Tensor"),
    ("@T.prim_func\ndef k(A: int):\n    pass", 2, "'A' is an operand"),
    ("@T.prim_func\ndef k(A: T.Tensor((4,), 'float32') = None):\n    pass", 2, "no defaults"),
    ("@T.prim_func\ndef k(A: T.Tensor((4,), 'float32')):\n    pass", 3, "holds values and one `with T.Kernel"),
    ("@T.prim_func\ndef k(A: T.Tensor((4,), 'float32')):\n    x = 1", 2, "holds one `with T.Kernel(...)`, this one 0"),
    ("@T.prim_func\ndef k(A: T.Tensor((4,), 'float32')):\n    with T.Kernel(1) as b:\n        pass", 3, "the kernel writes no tensor"),
    ("@T.prim_func\ndef k(A: T.Tensor((4,), 'float32')):\n    with T.Kernel(1, cluster=2) as b:\n        pass", 3, "the grid and threads, not cluster"),
    ("@T.prim_func\ndef k(A: T.Tensor((4,), 'float32')):\n    with T.Kernel(1, 2) as b:\n        pass", 3, "one for each of the 2 extents"),
    ("@T.prim_func\ndef k(A: T.Tensor((4,), 'float32')):\n    with T.Kernel() as b:\n        pass", 3, "one to three extents"),
    ("@T.prim_func\ndef k(A: T.Tensor((4,), 'float32')):\n    with T.Kernel(1, threads=0) as b:\n        pass", 3, "how many threads"),
    ("from __future__ import annotations\n@T.prim_func\ndef k(A: T.Tensor((Q,), 'float32')):\n    pass", 3, "name 'Q' is not defined"),
    ("@tilejit.jit\ndef k(A):\n    A: T.Tensor((4,), 'float32')\n    B = T.empty((4,), 'float32')\n    with T.Kernel(1) as b:\n        T.copy(A, B)\n    return A\nk.compile()",
     7, "a kernel returns what T.empty made"),
    ("@tilejit.jit\ndef k(A):\n    A: T.Tensor((4,), 'float32')\n    B = T.empty((4,), 'float32')\n    with T.Kernel(1) as b:\n        T.copy(A, B)\nk.compile()",
     2, "B is made by T.empty and not returned"),
    ("@tilejit.jit\ndef k(A):\n    C: T.Tensor((4,), 'float32')\n    with T.Kernel(1) as b:\n        pass\nk.compile(A=1)", 3,
     "annotations describe the parameters"),
    ("@tilejit.jit\ndef k(A):\n    A: int\n    with T.Kernel(1) as b:\n        pass\nk.compile()", 3, "an operand is a T.Tensor"),
    ("@tilejit.jit\ndef k(A):\n    M = T.const(5)\n    with T.Kernel(1) as b:\n        pass\nk.compile(A=1)", 3, "T.const takes the names"),
    ("@tilejit.jit\ndef k(A):\n    a, b = 5\n    with T.Kernel(1) as b:\n        pass\nk.compile(A=1)", 3, "not iterable"),
    ("@tilejit.jit\ndef k(A):\n    B = T.empty()\n    with T.Kernel(1) as b:\n        pass\nk.compile(A=1)", 3, "shape"),
    ("@T.prim_func\ndef k(A: T.Tensor((4,), 'float32')):\n    with T.Kernel(2 ** 70) as b:\n        pass", 3, "more than 64 bits"),
    ("@tilejit.jit\ndef k(A):\n    for i in range(3):\n        pass\n    with T.Kernel(1) as b:\n        pass\nk.compile(A=1)", 3,
     "a kernel function holds annotations, values"),
]


class RefusedTest(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)
        self.count = 0

    def run_file(self, text):
        """Executes a file of its own; the file and its globals."""
        self.count += 1
        path = pathlib.Path(self.directory.name) / f"row{self.count}.py"
        path.write_text(text)
        spec = importlib.util.spec_from_file_location(path.stem, path)
        module = importlib.util.module_from_spec(spec)
        self.path = path
        spec.loader.exec_module(module)
        return module

    def refusal(self, call):
        with self.assertRaises(T.Refused) as caught:
            call()
        self.assertEqual(caught.exception.filename, str(self.path))
        return caught.exception

    def file_of(self, statement):
        text = KERNEL.replace("        HERE\n", textwrap.indent(statement, " " * 8) + "\n")
        lines = text.split("\n")
        marked = [n for n, line in enumerate(lines, 1) if "# <-" in line]
        return text, marked[0] if marked else KERNEL.split("\n").index("        HERE") + 1

    def test_statements(self):
        for statement, message in STATEMENTS:
            with self.subTest(statement):
                text, line = self.file_of(statement)
                error = self.refusal(lambda: self.run_file(text))
                self.assertIn(message, error.msg)
                self.assertEqual(error.lineno, line)
                self.assertEqual(error.text.rstrip("\n"), text.split("\n")[line - 1])
                self.assertGreater(error.offset, 8)

    def test_what_the_library_refuses(self):
        context = tilejit.Context(cache_mode="memory")
        for statement, message in LIBRARY:
            with self.subTest(statement):
                text, line = self.file_of(statement)
                module = self.run_file(text)
                error = self.refusal(lambda: tilejit.compile(module.kernel, target="reference", context=context))
                self.assertIn(message, error.msg)
                self.assertIn("(in the tile program: ", error.msg)
                self.assertEqual(error.lineno, line)
                self.assertIsInstance(error.__cause__, tilejit.Error)

    def test_files(self):
        header = "import tilejit, tilejit.language as T; "
        for text, line, message in FILES:
            with self.subTest(text):
                future = "from __future__ import annotations\n" if text.startswith("from") else ""
                body = text[len(future):]
                # The imports take the first line, whatever follows keeps its distance to it.
                error = self.refusal(lambda: self.run_file(future + header + "\n" + body))
                self.assertIn(message, error.msg)
                self.assertEqual(error.lineno, line + 1)

    def test_the_kernel_around_the_rows_is_right(self):
        module = self.run_file(self.file_of("pass")[0])
        self.assertIn("out C: tensor<f32>[100, 64]", module.kernel.source)
        tilejit.compile(module.kernel, target="reference")

    def test_a_function_without_source(self):
        scope = {"T": T}
        exec("def k(A: T.Tensor((4,), 'float32')): pass", scope)
        with self.assertRaises(TypeError) as caught:
            T.prim_func(scope["k"])
        self.assertIn("the source of", str(caught.exception))

    def test_words_of_tensors(self):
        for call, message in [(lambda: T.Tensor((4.5,), "float32"), "no int from 0 on"),
                              (lambda: T.Tensor((-4,), "float32"), "no int from 0 on"),
                              (lambda: T.Tensor[4], "takes two things"),
                              (lambda: T.dynamic("not a name"), "a dim's name is an identifier"),
                              (lambda: bool(T.dynamic("m") > 1), "is known in the kernel only")]:
            with self.subTest(message), self.assertRaises(TypeError) as caught:
                call()
            self.assertIn(message, str(caught.exception))


if __name__ == "__main__":
    sys.exit(unittest.main())
