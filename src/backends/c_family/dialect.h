// What differs between the C-like languages that GPUs are programmed in, as a table of texts. The
// emitter knows no vendor: it asks the table, so that a new language is a new row.
#ifndef TILEJIT_BACKENDS_C_FAMILY_DIALECT_H_
#define TILEJIT_BACKENDS_C_FAMILY_DIALECT_H_

#include <compare>
#include <string>
#include <string_view>

#include "base/matrix_atom.h"
#include "ir/expr.h"

namespace tl {

// Registers that instructions of four warps sum up in, apart from the thread's own array: what the
// thread has goes in before them, and comes out behind them. `number`: the source has several.
struct WarpgroupSums {
  DType type;
  int elements;
  int number;
};
std::string NameOf(const WarpgroupSums& sums);  // "c0"

// A product by instructions of four warps, as its prelude function is written for it.
struct WarpgroupProduct {
  DType a, b, c;
  int n, k, steps;
  bool a_in_registers, a_depth_first, b_depth_first;
  // The first element of sums apart, and their number; kNone: the sum is an array of the thread's.
  static constexpr int kNone = -1;
  int first = 0, sums = kNone;
  auto operator<=>(const WarpgroupProduct&) const = default;
};

// "tl_bf16, tl_bf16, float, 256, 4, false, true", of sums apart ", 0" besides.
std::string TemplateArguments(const WarpgroupProduct& p);

// "$0", "$1" in a text stand for the arguments that its comment names.
struct Dialect {
  std::string_view language;  // Generated::language
  // Prelude, in parts (prelude.h): qualifiers, bit casts, atomics, barriers; what a global tensor
  // (TL_GLOBAL(type) name), a tile (TL_SHARED(type, name, byte offset, elements);) and a thread's
  // array (TL_LOCAL(type, name, elements);) are; moves, exchanges and matrix instructions.
  std::string_view primitives;
  // Before an entry's name; $0: threads per block, $1: blocks that a multiprocessor is to hold.
  std::string_view entry;
  std::string_view arena;          // declares `unsigned char arena[]`, the block's shared memory
  std::string_view block_index;    // expression, int
  std::string_view grid_size;      // expression, int
  std::string_view thread_index;   // expression, int
  std::string_view barrier;        // statement: all threads of the block meet
  std::string_view warp_barrier;   // statement: the threads of a warp meet
  std::string_view group_barrier;  // statement: the threads of a group meet; $0: group, $1: threads
  std::string_view block_barrier;  // the same of the first $0 threads of a block
  // Statements of all threads of four warps: from here on they have $0 registers each, fewer or
  // more than before.
  std::string_view fewer_registers, more_registers;
  std::string_view unroll;     // line before a loop to be unrolled
  std::string_view no_unroll;  // line before a loop to be kept
  // The function tl_wgmma for one product; null: the language has none.
  std::string (*warpgroup_product)(const WarpgroupProduct&) = nullptr;
  // The functions tl_sums_in and tl_sums_out for such registers.
  std::string (*warpgroup_sums)(const WarpgroupSums&) = nullptr;
  // Does the language have the function for values of the type? Null: all of them.
  bool (*has_function)(MathFn, ScalarType) = nullptr;
};

// The part of the prelude that is the same everywhere: number formats, integer division, saturating
// conversions. It uses what Dialect::primitives defines (numerics.cuh lists it).
std::string_view NumericsPrelude();

}  // namespace tl

#endif  // TILEJIT_BACKENDS_C_FAMILY_DIALECT_H_
