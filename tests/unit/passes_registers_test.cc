// What the passes make of loops over fragments that lie in registers.
#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>

#include "gmock/gmock.h"
#include "ir/unparse.h"
#include "ir/visit.h"
#include "tests/unit/cuda_testing.h"

namespace tl {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

// A program of tests/programs/table.
Module LowerFile(std::string_view name, const testing::Values& values = {}) {
  std::ifstream in(absl::StrCat(TL_SOURCE_DIR, "/tests/programs/table/", name, ".tl"));
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  auto lowered = testing::LowerText(text, values, *FindCudaTarget("sm_80"));
  EXPECT_TRUE(lowered.ok()) << FormatSpan(DetailOf(lowered.status()).span) << lowered.status();
  return lowered.ok() ? std::move(lowered->thread) : Module();
}

int64_t LongestUnrolled(const Module& m) {
  int64_t longest = 0;
  for (const Launch& launch : m.launches) {
    VisitStmts(launch.body, [&](const StmtRef& s) {
      if (const SlotFor* loop = As<SlotFor>(s)) longest = std::max(longest, int64_t{loop->count});
    });
  }
  return longest;
}

// A fragment that is read in a loop of more dims is dealt out as the loop is, if each thread's
// share of the loop can be unrolled.
TEST(RegisterLoops, AreNotUnrolledBeyondMeasure) {
  const Module wide = LowerFile("wide_loop");
  EXPECT_LE(LongestUnrolled(wide), 16) << ToText(wide);
  EXPECT_THAT(wide.notes, Contains(HasSubstr("f is converted for the statement at 11:5: through "
                                             "shared memory, 1024 bytes")));
  const Module narrow = LowerFile("wide_loop", {{"bm", "16"}});
  EXPECT_EQ(LongestUnrolled(narrow), 16 * 512 / 128) << ToText(narrow);
}

// What changes memory and writes no registers is left to one of the threads that hold an element;
// where both happen, the loop leaves the registers alone.
TEST(RegisterLoops, OneHolderReadsWhatItChanges) {
  const Module by_owner = LowerFile("one_changer", {{"body", "value"}});
  EXPECT_THAT(by_owner.notes, Not(Contains(HasSubstr("is converted"))));
  const Module in_memory = LowerFile("one_changer", {{"body", "both"}});
  EXPECT_THAT(in_memory.notes, Contains(HasSubstr("f is converted")));
}

}  // namespace
}  // namespace tl
