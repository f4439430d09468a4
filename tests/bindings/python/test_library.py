"""The package over the C interface: structs, errors, tensors, contexts."""

import ctypes
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import unittest

import numpy as np

import tilejit
from tilejit import _library

ROOT = pathlib.Path(__file__).resolve().parents[3]
SCALE = """tl 1.0
kernel scale(M: dim, N: dim) {
  in X: tensor<f32>[M, N] strides[?, 1], s: f32, k: i32
  out Y: tensor<f32>[M, N]
  launch m in M, n in ceildiv(N, 32) {
    x = alloc_fragment<f32>[32]
    copy X[m, n*32:] -> x
    parallel i in 32 { x[i] = x[i]*s + f32(k) }
    copy x -> Y[m, n*32:]
  }
}
"""


def context():
    return tilejit.Context(cache_mode="memory")


class Dlpack:
    """An array of another library."""

    def __init__(self, array):
        self._array = array

    def __dlpack__(self, stream=None):
        assert stream is None, "the CPU has no streams"
        return self._array.__dlpack__()

    def __dlpack_device__(self):
        return self._array.__dlpack_device__()


class LibraryTest(unittest.TestCase):
    def test_structs_are_those_of_the_header(self):
        text = "#define TL_EXPERIMENTAL\n#include <stddef.h>\n#include <dlpack/dlpack.h>\n#include <tl/tl.h>\n"
        for struct in [*_library.STRUCTS, _library.tl_scalar]:
            name = struct.__name__
            text += f'_Static_assert(sizeof({name}) == {ctypes.sizeof(struct)}, "size of {name}");\n'
            for field, _ in struct._fields_:
                at = getattr(struct, field)
                text += (f'_Static_assert(offsetof({name}, {field}) == {at.offset}, "offset of {name}.{field}");\n'
                         f'_Static_assert(sizeof((({name}*)0)->{field}) == {at.size}, "size of {name}.{field}");\n')
        dl = tilejit.tensors.DLTensor
        text += f'_Static_assert(sizeof(DLTensor) == {ctypes.sizeof(dl)}, "");\n'
        for field, there in [("data", "data"), ("device_type", "device.device_type"), ("device_id", "device.device_id"),
                             ("ndim", "ndim"), ("code", "dtype.code"), ("bits", "dtype.bits"), ("lanes", "dtype.lanes"),
                             ("shape", "shape"), ("strides", "strides"), ("byte_offset", "byte_offset")]:
            text += f'_Static_assert(offsetof(DLTensor, {there}) == {getattr(dl, field).offset}, "{field}");\n'
        compiled = subprocess.run(["cc", "-x", "c", "-std=c11", "-fsyntax-only", f"-I{ROOT}/include", "-"], input=text,
                                  capture_output=True, text=True)
        self.assertEqual(compiled.returncode, 0, compiled.stderr)

    def test_functions_are_those_of_the_header(self):
        # Types are as wide as the header's: a call with too few registers would show nowhere else.
        c = {None: "void", ctypes.c_int32: "int32_t", ctypes.c_uint32: "uint32_t", ctypes.c_size_t: "size_t",
             ctypes.c_char_p: "const char*", ctypes.c_void_p: "*"}
        header = (ROOT / "include/tl/tl.h").read_text()
        for name, (result, arguments) in _library._FUNCTIONS.items():
            before, declared = re.search(rf"TL_API\s+([^;(]*?)\s*\b{name}\(([^)]*)\);", header).groups()
            declared = [] if declared == "void" else declared.split(",")
            self.assertEqual(len(declared), len(arguments), name)
            for there, here in zip(declared, arguments):
                pointer = here in (ctypes.c_char_p, ctypes.c_void_p) or hasattr(here, "contents")
                self.assertEqual("*" in there or "callback" in there, pointer, f"{name}: {there}")
                if not pointer and "tl_" not in there:
                    self.assertIn(c[here], there, name)
            self.assertEqual({"tl_status": "int32_t"}.get(before, before), c[result], name)

    def test_the_library_is_named_by_the_environment(self):
        for value, expected in [("/no/such/directory", "/no/such/directory"), (__file__, "invalid ELF header")]:
            run = subprocess.run([sys.executable, "-c", "import tilejit"], capture_output=True, text=True,
                                 env={**os.environ, "TILEJIT_LIBRARY": value})
            self.assertNotEqual(run.returncode, 0)
            self.assertIn(expected, run.stderr)

    def test_errors_carry_code_place_and_message(self):
        with self.assertRaises(tilejit.Error) as caught:
            context().compile(source="tl 1.0\nkernel k(N: dim) {\n  in X: tensor<f33>[N]\n}\n", device="reference")
        error = caught.exception
        self.assertEqual((error.status, error.reason, error.domain), ("INVALID_ARGUMENT", "SEMANTICS", "TL"))
        self.assertEqual((error.span.line, error.span.column), (3, 16))
        self.assertIn("f33", error.message)
        self.assertIn("INVALID_ARGUMENT: 3:16:", str(error))

    def test_launches_with_strides_and_scalars(self):
        kernel = context().compile(source=SCALE, device="reference")
        x = np.arange(12, dtype=np.float32).reshape(3, 4)[:, :2]
        y = np.empty((3, 2), np.float32)
        kernel(x, y, scalars=(2, 10))
        np.testing.assert_array_equal(y, x * 2 + 10)
        kernel(Dlpack(x), Dlpack(y), scalars=(0.5, 0))
        np.testing.assert_array_equal(y, x * 0.5)

    def test_tensors_on_a_gpu_are_taken_without_waiting(self):
        streams = []

        class OnGpu(Dlpack):
            def __dlpack__(self, stream=None):
                streams.append(stream)
                return super().__dlpack__()

            def __dlpack_device__(self):
                return (2, 0)

        add = context().compile(family="vector_add", device="reference")
        tensors = [OnGpu(np.ones(4, np.float32)) for _ in range(3)]
        add(*tensors)
        # The caller orders streams.
        self.assertEqual(streams, [-1, -1, -1])

    def test_describes_itself(self):
        kernel = context().compile(source=SCALE, device="reference")
        self.assertEqual((kernel.name, kernel.target), ("scale", "reference"))
        self.assertEqual([(t.name, t.dtype, t.access, t.shape) for t in kernel.tensors],
                         [("X", "f32", "in", "[M, N]"), ("Y", "f32", "out", "[M, N]")])
        self.assertEqual(kernel.dims, ["M", "N"])
        self.assertEqual([(s.name, s.dtype) for s in kernel.scalars], [("s", "f32"), ("k", "i32")])
        self.assertIn("kernel scale", kernel.text("ir"))
        self.assertIn("vector_add", tilejit.families())
        self.assertGreater(tilejit.version(), 0)

    def test_what_cannot_be_meant_is_refused(self):
        c = context()
        add = c.compile(family="vector_add", device="reference")
        scale = c.compile(source=SCALE, device="reference")
        x, y = np.zeros(4, np.float32), np.zeros((2, 2), np.float32)
        fixed = np.zeros(4, np.float32)
        fixed.flags.writeable = False
        packed = np.zeros(4, np.dtype([("a", "u1"), ("b", "<f4")]))["b"]
        rows = [
            ("'vector_add' takes 3 tensors, and 1 are given", lambda: add(x)),
            ("tensor 'C' is written; the array given is read-only", lambda: add(x, x, fixed)),
            ("tensor 'A' has dtype i32, the kernel declares f32", lambda: add(x.astype(np.int32), x, x)),
            ("array of <c16, which no dtype", lambda: add(x.astype(complex), x, x)),
            ("in the machine's byte order", lambda: add(x.astype(">f4"), x, x)),
            ("not aligned", lambda: add(packed, x, x)),
            ("tensor 1 is a list", lambda: add(x, [1.0], x)),
            ("an earlier tensor 4", lambda: add(x, x[:3], x)),
            ("1.5 was given for the scalar 'k', which is of type i32", lambda: scale(y, y, scalars=(1, 1.5))),
            ("scalars", lambda: scale(y, y)),
            ("NUL", lambda: c.compile(family="vector\0add")),
            ("no device of backend 'abacus'; there are", lambda: c.compile(family="vector_add", device="abacus")),
            ("cache_mode is one of", lambda: tilejit.Context(cache_mode="none")),
            ("has the texts ir, source", lambda: add.text("poem")),
            ("dtype is one of", lambda: tilejit.Tensor(x, "f33")),
            ("sizes differ", lambda: tilejit.Tensor(x, "bf16")),
            ("name the device to launch it on", lambda: c.compile(family="vector_add", target="reference")(x, x, x)),
        ]
        for message, call in rows:
            with self.subTest(message), self.assertRaises(tilejit.Error) as caught:
                call()
            self.assertIn(message, str(caught.exception))

    def test_dtypes_arrive_as_themselves(self):
        c = context()
        for dtype, ((_, bits), names) in tilejit.tensors.DTYPES.items():
            with self.subTest(dtype):
                kernel = c.compile(device="reference", source=f"""tl 1.0
kernel k(N: dim) {{
  in X: tensor<{dtype}>[N]
  out Y: tensor<{dtype}>[N]
  launch n in N {{
    x = alloc_fragment<{dtype}>[1]
    copy X[n] -> x
    copy x -> Y[n]
  }}
}}
""")
                plain = names[0] in np.sctypeDict
                x = np.ones(3, names[0]) if plain else tilejit.Tensor(np.full(3, 1, f"uint{bits}"), dtype)
                y = np.zeros(3, names[0]) if plain else tilejit.Tensor(np.zeros(3, f"uint{bits}"), dtype)
                kernel(x, y)
                np.testing.assert_array_equal(getattr(x, "data", x), getattr(y, "data", y))

    def test_warms_seals_and_counts(self):
        c = context()
        plan = 'plan = 1\n[[kernel]]\nfamily = "vector_add"\ntargets = ["reference"]\n'
        self.assertEqual(c.warm(plan), {"total": 1, "compiled": 1, "present": 0, "failed": 0})
        self.assertIn('"cached": true', c.query(family="vector_add", target="reference"))
        c.seal()
        c.compile(family="vector_add", device="reference")
        with self.assertRaises(tilejit.Error) as caught:
            c.compile(family="softmax", device="reference")
        self.assertEqual((caught.exception.status, caught.exception.reason), ("UNAVAILABLE", "NOT_READY"))
        self.assertIn('family = "softmax"', caught.exception.log)
        self.assertEqual(c.stats()["compiles"], 1)

    def test_tunes(self):
        c = context()
        if not any(d.backend == "cpu" for d in c.devices()):
            self.skipTest("the CPU module is not built")
        events = []
        space = dict(family="softmax", params={"t": "f32", "N": 64, "bm": "1,8", "bn": 512}, device="cpu", dims=[64],
                     max_seconds=1)
        tuned = c.tune(**space, progress=events.append)
        self.assertTrue(any(e.fate == "measured" and e.median_ns > 0 for e in events))
        self.assertEqual(tuned.space, 2)
        self.assertIn("bn=512", tuned.configuration)
        self.assertIn('"bm"', tuned.report)
        x, y = np.ones((64, 64), np.float32), np.empty((64, 64), np.float32)
        tuned.kernel(x, y)
        np.testing.assert_allclose(y, 1 / 64, rtol=1e-6)
        with self.assertRaises(tilejit.Error) as caught:
            c.tune(**space, progress=lambda _: True)
        self.assertEqual(caught.exception.status, "CANCELLED")
        with self.assertRaises(ZeroDivisionError):
            c.tune(**space, progress=lambda _: 1 // 0)

    def test_packs_and_the_log(self):
        messages = []
        c = tilejit.Context(cache_mode="memory", packs=["/no/such.pack"], log=lambda *m: messages.append(m))
        c.compile(family="vector_add", device="reference")
        self.assertEqual([level for level, text in messages if "/no/such.pack" in text], ["warning"])

    def test_a_cache_directory_is_used(self):
        with tempfile.TemporaryDirectory() as directory:
            for expected in [(0, 1), (1, 0)]:
                c = tilejit.Context(cache_dir=pathlib.Path(directory))
                c.compile(family="vector_add", device="reference")
                stats = c.stats()
                self.assertEqual((stats["hits"], stats["compiles"]), expected)
                self.assertTrue(stats["location"].startswith(directory))

    def test_one_kernel_serves_many_threads(self):
        add = context().compile(family="vector_add", device="reference")
        wrong = []

        def work(n):
            a, c = np.full(n, n, np.float32), np.empty(n, np.float32)
            for _ in range(20):
                add(a, a, c)
                wrong.extend(c[c != 2 * n])
                try:
                    add(a, a, c[1:])
                except tilejit.Error as error:
                    # The error of this thread, not of another.
                    wrong.extend([] if f"N = {n}" in str(error) or f"tensor {n}" in str(error) else [str(error)])

        threads = [threading.Thread(target=work, args=(10 * t,)) for t in range(1, 5)]
        [t.start() for t in threads]
        [t.join() for t in threads]
        self.assertEqual(wrong, [])


if __name__ == "__main__":
    unittest.main()
