// Launches whose blocks run in clusters: which loops load for several blocks at once, why the
// others do not, and that any number of iterations computes the right numbers, whenever boxes
// arrive.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "ir/unparse.h"
#include "tests/emulate/emulate_testing.h"

namespace tl {
namespace {

using ::testing::Contains;
using testing::CudaCase;
using testing::FamilyText;
using ::testing::HasSubstr;
using testing::TableText;

using Values = std::map<std::string, std::string>;

testing::Values ListOf(const Values& values) { return {values.begin(), values.end()}; }

std::string NameOf(std::string_view program, const Values& values) {
  return absl::StrCat(program, " ", absl::StrJoin(values, " ", absl::PairFormatter("=")));
}

// A product of 256 x 128 in tiles of 64 x 32: four by four of them.
Values ProductValues(int n, int m, const Values& more = {}) {
  Values values{{"M", "256"}, {"N", "128"}, {"bm", "64"},      {"bn", "32"},
                {"bk", "32"}, {"t", "f16"}, {"copies", "warp"}};
  values["cn"] = absl::StrCat(n);
  values["cm"] = absl::StrCat(m);
  for (const auto& [name, value] : more) values[name] = value;
  return values;
}

// Attention whose key blocks are the same for all queries of a head, or not.
std::string AttentionText() {
  return absl::StrReplaceAll(FamilyText("attention"),
                             {{"producer=warp {", "producer=warp cluster=[2] {"}});
}
Values AttentionValues(const Values& more = {}) {
  Values values{{"D", "32"},     {"bm", "64"},       {"bn", "16"},      {"rows", "16"},
                {"stages", "2"}, {"overlap", "off"}, {"causal", "off"}, {"t", "f16"},
                {"Sq", "256"},   {"H", "2"},         {"Hkv", "1"},      {"B", "1"}};
  for (const auto& [name, value] : more) values[name] = value;
  return values;
}

// ---- Which

struct Choice {
  std::string program, text;
  Values values;
  std::string target;
  bool clusters;
  std::vector<const char*> notes;  // a part of a line each
};

std::vector<Choice> Choices() {
  const std::string product = TableText("product"), attention = AttentionText();
  std::vector<Choice> choices;
  const auto add = [&](const Values& values, bool clusters, std::vector<const char*> notes,
                       std::string target = "sm_90a") {
    choices.push_back({"product", product, values, std::move(target), clusters, std::move(notes)});
  };
  add(ProductValues(2, 1), true,
      {"each of 2 blocks loads its share of a_s for all of them", "boxes of 32 x 32, shared by 2"});
  add(ProductValues(1, 2), true, {"each of 2 blocks loads its share of b_s for all of them"});
  add(ProductValues(2, 2), true,
      {"2 blocks loads its share of a_s", "2 blocks loads its share of b_s"});
  add(ProductValues(4, 1), true, {"each of 4 blocks loads its share of a_s"});
  add(ProductValues(2, 1, {{"stay", "on"}}), true, {"its share of a_s"});
  // The cluster alone asks for a producer.
  add(ProductValues(2, 1, {{"copies", "auto"}}), true, {"its share of a_s"});
  // Alone, and why.
  add(ProductValues(1, 1), false, {});
  add(ProductValues(2, 1), false, {"blocks run alone: clusters are not made for sm_80"}, "sm_80");
  add(ProductValues(2, 1), false, {"blocks run alone: clusters are not made for sm_90"}, "sm_90");
  add(ProductValues(3, 1), false, {"4 along n are not whole clusters of 3"});
  add(ProductValues(2, 1, {{"copies", "self"}}), false, {"blocks run alone: all threads copy"});
  add(ProductValues(2, 1, {{"stages", "1"}}), false, {"blocks run alone: all threads copy"});
  Values dynamic = ProductValues(1, 2);
  dynamic.erase("M");
  add(dynamic, false, {"how many there are along m is not known"});
  add(ProductValues(1, 4, {{"bn", "16"}}), false,
      {"shares of b_s would not be multiples of 8 rows", "no loop loads for a whole cluster"});
  add(ProductValues(2, 2, {{"bn", "8"}}), true,
      {"its share of a_s", "nothing for other blocks besides: shares of b_s"});
  const auto attend = [&](const Values& more, bool clusters, std::vector<const char*> notes) {
    choices.push_back(
        {"attention", attention, AttentionValues(more), "sm_90a", clusters, std::move(notes)});
  };
  attend({}, true, {"its share of k_s", "its share of v_s"});
  attend({{"causal", "on"}}, false,
         {"its iterations may differ along m", "no loop loads for a whole cluster"});
  return choices;
}

TEST(Cluster, NoLargerThanTheTargets) {
  Target target = testing::TargetFor("sm_90a", true);
  target.max_cluster = 2;
  const auto program =
      testing::LowerText(TableText("product"), ListOf(ProductValues(2, 2)), target);
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_THAT(program->thread.notes, Contains(HasSubstr("a cluster has at most 2 of them, not 4")));
}

TEST(Cluster, WhichLoopsLoadForOthers) {
  for (const Choice& c : Choices()) {
    SCOPED_TRACE(absl::StrCat(NameOf(c.program, c.values), " for ", c.target));
    const auto program =
        testing::LowerText(c.text, ListOf(c.values), testing::TargetFor(c.target, true));
    ASSERT_TRUE(program.ok()) << program.status();
    for (const char* note : c.notes) {
      EXPECT_THAT(program->thread.notes, Contains(HasSubstr(note)));
    }
    EXPECT_EQ(program->generated.entries[0].cluster > 1, c.clusters);
    const std::string source(testing::KernelText(program->generated));
    for (const char* part : {"tl_cluster_barrier", "tl_bulk_load_to", "tl_mbarrier_arrive_at"}) {
      EXPECT_EQ(absl::StrContains(source, part), c.clusters) << part;
    }
    const std::string text = ToText(program->thread);
    for (const char* part : {"cluster_barrier", "mbarrier_fence", "cluster=["}) {
      EXPECT_EQ(absl::StrContains(text, part), c.clusters) << part;
    }
  }
}

// ---- Numbers

void ExpectRightNumbers(const CudaCase& c) {
  testing::ExpectRightNumbers(
      c, testing::TargetFor("sm_90a", true),
      {.seeds = {1}, .arrivals = {Arrival::kRandom, Arrival::kEager, Arrival::kLazy}});
}

// Numbers of iterations from none to twice the slots and one more, whole ones and not.
std::vector<std::vector<int64_t>> Depths(int stages, int step) {
  std::vector<std::vector<int64_t>> dims{{0}, {8}};
  for (int trips = 1; trips <= 2 * stages + 1; ++trips) {
    dims.push_back({trips * step});
    if (trips % 2 == 1) dims.push_back({trips * step + 8});
  }
  // Boxes do not serve rows of this length.
  dims.push_back({3 * step + 5});
  return dims;
}

struct Shape {
  int n, m;
};

void ExpectProducts(const std::vector<Shape>& clusters, const std::vector<int>& stages,
                    bool persistent, const Values& more = {}) {
  for (const Shape& shape : clusters) {
    for (int s : stages) {
      Values values = ProductValues(
          shape.n, shape.m, {{"stages", absl::StrCat(s)}, {"stay", persistent ? "on" : "off"}});
      for (const auto& [name, value] : more) values[name] = value;
      ExpectRightNumbers(
          {NameOf("product", values), TableText("product"), ListOf(values), Depths(s, 32), {}});
    }
  }
}

TEST(Cluster, ProductsWithAnyNumberOfIterations) {
  ExpectProducts({{2, 1}, {1, 2}}, {2, 3, 4}, false);
}
TEST(Cluster, PersistentProductsWithAnyNumberOfIterations) {
  ExpectProducts({{2, 1}, {1, 2}}, {2, 4}, true);
}
TEST(Cluster, ClustersOfFourBlocks) {
  ExpectProducts({{2, 2}, {4, 1}}, {3}, false);
  ExpectProducts({{2, 2}}, {3}, true);
}
TEST(Cluster, OtherLayoutsOfProducts) {
  ExpectProducts({{2, 1}, {1, 2}}, {3}, true, {{"ta", "on"}, {"tb", "off"}});
  ExpectProducts({{2, 1}}, {3}, true, {{"bk", "128"}, {"t", "bf16"}});
  ExpectProducts({{2, 1}, {1, 2}}, {3}, true, {{"way", "swapped"}, {"bm", "16"}, {"bn", "64"}});
  ExpectProducts({{2, 2}}, {2}, false, {{"thr", "256"}, {"bm", "128"}, {"cm", "2"}});
}

// Panels of tiles are panels of clusters.
TEST(Cluster, OrderOfTheGrid) {
  for (const char* order : {"order=row(2)", "order=col(2)", "order=row(3)", "order=col"}) {
    for (const Shape& shape : {Shape{2, 1}, Shape{1, 2}, Shape{2, 2}}) {
      const Values values = ProductValues(shape.n, shape.m, {{"stay", "on"}});
      ExpectRightNumbers(
          {absl::StrCat(NameOf("product", values), " ", order),
           absl::StrReplaceAll(TableText("product"),
                               {{"persistent=stay", absl::StrCat("persistent=stay ", order)}}),
           ListOf(values),
           {{64}},
           {}});
    }
  }
}

TEST(Cluster, AttentionToSharedKeys) {
  for (const char* stages : {"1", "2"}) {
    for (const char* overlap : {"off", "on"}) {
      const Values values = AttentionValues({{"stages", stages}, {"overlap", overlap}});
      ExpectRightNumbers({NameOf("attention", values),
                          AttentionText(),
                          ListOf(values),
                          {{0}, {1}, {16}, {30}, {48}, {70}, {90}},
                          {}});
    }
  }
}

}  // namespace
}  // namespace tl
