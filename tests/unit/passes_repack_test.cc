// RepackRows: which copies it redirects, what it leaves alone, and that the program means the same.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ir/address.h"
#include "ir/host_eval.h"
#include "ir/unparse.h"
#include "passes/repack_rows.h"
#include "tests/unit/reference_testing.h"

namespace tl {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

Target WithBoxes() {
  Target t;
  t.name = "boxes";
  t.simt = true;
  t.bulk_copies = true;
  t.matrix_atoms.push_back(
      {"wgmma", AtomForm::kWgmma, DType::kF16, DType::kF16, DType::kF32, 64, 8, 16});
  return t;
}

std::string Gemm(std::string_view a_copy, std::string_view k = "103", std::string_view stages = "2",
                 std::string_view more = "") {
  return absl::StrCat(
      "tl 1.0\nkernel k(M: dim", k == "K" ? ", K: dim" : "", ") {\n  in A: tensor<f16>[M, ", k,
      "], B: tensor<f16>[64, 128], n: i32", more,
      "\n"
      "  out C: tensor<f32>[M, 64]\n"
      "  launch m in ceildiv(M, 64) {\n"
      "    a_s, b_s = alloc_shared<f16>[64, 32]\n    c = alloc_fragment<f32>[64, 64]\n"
      "    clear c\n    pipelined i in 4 stages=",
      stages, " {\n      ", a_copy,
      "\n      copy B[0, i*32] -> b_s\n"
      "      gemm a_s, b_s -> c transpose_b\n    }\n    copy c -> C[m*64, 0]\n  }\n}\n");
}

constexpr std::string_view kCopy = "copy A[m*64, i*32] -> a_s";

Module Repacked(std::string_view text, const Target& target = WithBoxes()) {
  StatusOr<Module> m = reference::BindText(text);
  EXPECT_TRUE(m.ok()) << m.status();
  if (!m.ok()) return {};
  RepackRows(*m, target);
  return *std::move(m);
}

TEST(RepackRows, CopiesTheOperandFirst) {
  const Module m = Repacked(Gemm(kCopy));
  ASSERT_THAT(m.workspaces, SizeIs(1));
  ASSERT_THAT(m.launches, SizeIs(2));
  const std::string text = ToText(m);
  // Rows of 103 elements of 2 bytes become rows of 256 bytes.
  EXPECT_THAT(text, HasSubstr("A_rows: tensor<f16>[M, 128]"));
  EXPECT_THAT(text, ContainsRegex("copy A\\[.*\\] -> x.*\n +copy x.* -> A_rows\\["));
  EXPECT_THAT(text, ContainsRegex("copy A_rows\\[m.*\\*64, i.*\\*32\\] -> a_s"));
  EXPECT_THAT(text, ContainsRegex("copy B\\[0, i.*\\*32\\] -> b_s"));
  EXPECT_THAT(m.notes, SizeIs(1));
  // It goes through text on its way to other processes.
  const StatusOr<Module> again = reference::BindText(text);
  ASSERT_TRUE(again.ok()) << again.status() << "\n" << text;
  EXPECT_THAT(again->workspaces, SizeIs(1));
  EXPECT_THAT(again->launches, SizeIs(2));
}

// The copies name the operand; the workspace is empty where its rows are even.
TEST(RepackRows, LeavesTheChoiceToTheLaunch) {
  const Module m = Repacked(Gemm(kCopy, "K"));
  ASSERT_THAT(m.workspaces, SizeIs(1));
  ASSERT_THAT(m.launches, SizeIs(2));
  const std::string text = ToText(m);
  EXPECT_THAT(text, ContainsRegex("copy A\\[m.*\\*64, i.*\\*32\\] -> a_s"));
  const StatusOr<Module> again = reference::BindText(text);
  ASSERT_TRUE(again.ok()) << again.status() << "\n" << text;
  ASSERT_THAT(again->workspaces, SizeIs(1));
  const Buffer& rows = again->buffer(again->workspaces[0]);
  ASSERT_NE(rows.stands_for, kNoId);
  EXPECT_EQ(again->buffer(rows.stands_for).name, "A");
  const StatusOr<HostExpr> size =
      HostExpr::Compile(*again, StorageSize(*again, again->workspaces[0]));
  ASSERT_TRUE(size.ok()) << size.status();
  const struct {
    int64_t k, elements;
  } cases[] = {{103, 70 * 128}, {104, 0}, {0, 0}, {1, 70 * 64}, {129, 70 * 192}};
  for (const auto& c : cases) {
    const int64_t dims[] = {70, c.k};
    EXPECT_EQ(size->Eval({.dims = dims}).value(), c.elements) << c.k;
  }
}

TEST(RepackRows, AWorkspaceStandsForAnInTensorOfItsType) {
  const struct {
    std::string_view named, why;
  } cases[] = {{"C", "an output"}, {"n", "a scalar"},     {"X", "nothing"},
               {"W", "itself"},    {"E", "another type"}, {"F", "another rank"}};
  for (const auto& c : cases) {
    const StatusOr<Module> m = reference::BindText(absl::StrCat(
        "tl 1.0\nkernel k(M: dim) {\n  in n: i32, E: tensor<f32>[M, 8], F: tensor<f16>[M]\n"
        "  out C: tensor<f16>[M, 8]\n  workspace W: tensor<f16>[M, 8] for ",
        c.named, "\n  launch m in M {\n    parallel i in 8 { C[m, i] = n }\n  }\n}\n"));
    EXPECT_THAT(m.status().message(), HasSubstr("can stand for an 'in' tensor of f16 with 2 dims"))
        << c.why;
  }
}

TEST(RepackRows, LeavesOthersAlone) {
  Target plain = WithBoxes();
  plain.bulk_copies = false;
  Target through_registers = WithBoxes();
  through_registers.matrix_atoms.front().form = AtomForm::kMma;
  Target other_types = WithBoxes();
  other_types.matrix_atoms.front().a = DType::kBF16;
  const struct {
    std::string why, text;
    Target target;
  } cases[] = {
      {"no boxes", Gemm(kCopy), plain},
      {"tiles that threads read", Gemm(kCopy), through_registers},
      {"no product of these types", Gemm(kCopy), other_types},
      {"rows of 208 bytes", Gemm(kCopy, "104"), WithBoxes()},
      {"not pipelined", Gemm(kCopy, "103", "1"), WithBoxes()},
      {"read where memory says",
       Gemm("copy A[table[m]*64, i*32] -> a_s", "103", "2", ", table: tensor<i32>[8]"),
       WithBoxes()},
      {"rows left out", Gemm("copy A[m*64, i*32] -> a_s rows=n"), WithBoxes()},
  };
  for (const auto& c : cases) {
    const Module m = Repacked(c.text, c.target);
    EXPECT_THAT(m.workspaces, IsEmpty()) << c.why;
    EXPECT_THAT(m.launches, SizeIs(1)) << c.why;
    EXPECT_THAT(m.notes, IsEmpty()) << c.why;
  }
}

TEST(RepackRows, PartsNameTheSameLaunch) {
  const Module m = Repacked(
      "tl 1.0\nkernel k(M: dim, P: dim) {\n  in A: tensor<f16>[M, 103]\n  out C: tensor<f32>[M]\n"
      "  workspace W: tensor<f32>[M + P, 64]\n"
      "  launch segment (b, i0, i1, part, whole) in split(b in M: 4, P) {\n"
      "    a_s = alloc_shared<f16>[64, 32]\n    c = alloc_fragment<f32>[64, 64]\n    s = "
      "alloc_fragment<f32>[64]\n    clear c\n"
      "    pipelined i in i0..i1 stages=2 {\n      copy A[b, i*32] -> a_s\n"
      "      gemm a_s, a_s -> c transpose_b\n    }\n    reduce_sum c -> s dim=1 clear\n    copy s "
      "-> W[part, 0:]\n  }\n"
      "  launch m in M {\n    s = alloc_var<f32>(0)\n    serial q in parts(m) { s += W[q, 0] }\n"
      "    parallel i in 1 { C[m + i] = s }\n  }\n}\n");
  ASSERT_THAT(m.launches, SizeIs(3));
  const StatusOr<Module> again = reference::BindText(ToText(m));
  EXPECT_TRUE(again.ok()) << again.status() << "\n" << ToText(m);
}

// The repacked program gives the very bits of the plain one, whatever the padding held before.
TEST(RepackRows, MeansTheSame) {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> uniform(-1, 1);
  for (const int64_t rows : {1, 64, 97, 200}) {
    reference::Doubles a, b, out[2];
    for (int64_t i = 0; i < rows * 103; ++i) a.push_back(uniform(random));
    for (int64_t i = 0; i < 64 * 128; ++i) b.push_back(uniform(random));
    const std::string texts[] = {Gemm(kCopy), ToText(Repacked(Gemm(kCopy)))};
    for (int i = 0; i < 2; ++i) {
      reference::Program p(texts[i]);
      p.Dim("M", rows).Set("A", a).Set("B", b);
      const Status s = p.Run();
      ASSERT_TRUE(s.ok()) << s << "\n" << texts[i];
      out[i] = p.Exact("C");
    }
    EXPECT_EQ(out[0], out[1]) << rows;
  }
}

}  // namespace
}  // namespace tl
