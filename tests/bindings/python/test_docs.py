"""docs/from-tilelang.md shows programs as they are in examples/python/port.py, and what they become."""

import importlib.util
import pathlib
import re
import unittest

import tilejit.language

ROOT = pathlib.Path(__file__).resolve().parents[3]


def blocks(kind):
    """The code blocks of a kind, "" for those of none."""
    found, block = [], None
    for line in (ROOT / "docs/from-tilelang.md").read_text().splitlines(keepends=True):
        if not line.startswith("```"):
            if block is not None:
                block.append(line)
        elif block is None:
            block, opened = [], line[3:].strip()
        else:
            found.append((opened, "".join(block)))
            block = None
    return [text for opened, text in found if opened == kind]


class DocsTest(unittest.TestCase):
    def test_the_programs_are_those_of_the_example(self):
        example = (ROOT / "examples/python/port.py").read_text()
        self.assertEqual(len(blocks("python")), 7)
        for block in blocks("python"):
            self.assertIn(block, example)

    def test_what_they_become_is_true(self):
        spec = importlib.util.spec_from_file_location("port", ROOT / "examples/python/port.py")
        port = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(port)
        for factory in (port.matmul, port.softmax, port.rms_norm_silu, port.gemm):
            factory.target = "reference"
        shown = [block for block in blocks("") if block.startswith("tl 1.0")]
        made = [
            port.matmul(200, 136, 96, block_M=128, block_N=128, block_K=32), port.softmax(77, 250, block_M=4),
            port.rms_norm_silu(45, 160, BLOCK_M=8), port.gemm.compile(M=100, N=130, K=72),
        ]
        self.assertEqual(shown, [kernel.source for kernel in made])

    def test_every_word_of_the_table_is_offered(self):
        text = (ROOT / "docs/from-tilelang.md").read_text()
        taken = text[text.index("## What is taken"):text.index("## What is different")]
        for word in re.findall(r"\bT\.([A-Za-z_]\w*)", taken):
            self.assertTrue(hasattr(tilejit.language, word), word)


if __name__ == "__main__":
    unittest.main()
