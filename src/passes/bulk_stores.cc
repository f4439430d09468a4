#include "passes/bulk_stores.h"

#include <algorithm>
#include <string>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "ir/visit.h"

namespace tl {
namespace {

constexpr int kMostDims = 5;          // of a box
constexpr int64_t kAlignment = 16;    // of a tensor's start and strides, in bytes
constexpr int64_t kSmallestRow = 32;  // of a panel
constexpr int64_t kPeriod = 8;        // rows, after which chunks are permuted alike

}  // namespace

BulkStores::BulkStores(const Module& module, const Target& target, const Launch& launch)
    : module_(module),
      target_(target),
      wanted_(launch.stores == Stores::kBulk),
      block_(launch.resident == kNoId ? kNoId : launch.block),
      groups_own_(launch.owns != kNoId) {
  if (wanted_) Walk(launch.body, {});
}

void BulkStores::NoteRead(BufferId id) {
  if (module_.buffer(id).scope == Scope::kGlobal) uses_[id].read = true;
}

void BulkStores::NoteWrite(BufferId id, Place place) {
  if (module_.buffer(id).scope != Scope::kGlobal) return;
  Use& use = uses_[id];
  ++use.writes;
  use.in_loop = use.in_loop || place.in_loop;
  use.in_group = use.in_group || place.in_group;
}

void BulkStores::Walk(const Block& block, Place place) {
  for (const StmtRef& s : block) {
    VisitStmtExprs(*s, [&](const ExprRef& e) {
      VisitExpr(e, [&](const ExprRef& node) {
        if (const Load* load = As<Load>(node)) NoteRead(load->buffer);
      });
    });
    VisitRegions(*s, [&](const Region& r, bool write) {
      write ? NoteWrite(r.buffer, place) : NoteRead(r.buffer);
    });
    if (const Store* store = As<Store>(s)) NoteWrite(store->buffer, place);
    // What others have added counts, too.
    if (const AtomicElement* x = As<AtomicElement>(s)) NoteRead(x->buffer);
    if (const Atomic* x = As<Atomic>(s)) NoteRead(x->dst.buffer);
    Place inside = place;
    if (const For* loop = As<For>(s)) inside.in_loop = place.in_loop || !GoesThroughTiles(*loop);
    // Groups that own tiles write each its own.
    if (As<OnGroup>(s)) inside.in_group = !groups_own_;
    VisitBlocks(*s, [&](const Block& b) { Walk(b, inside); });
  }
}

// Tiles of a launch are written by one block each.
bool BulkStores::GoesThroughTiles(const For& loop) const {
  return block_ != kNoId && absl::c_any_of(loop.body, [&](const StmtRef& s) {
           const Let* let = As<Let>(s);
           return let && let->var == block_;
         });
}

std::string BulkStores::WhyNot(DType tile, const Region& to, const ExprRef& rows) const {
  const Buffer& tensor = module_.buffer(to.buffer);
  const auto bytes = static_cast<int64_t>(SizeOf(tile));
  if (!target_.bulk_copies) return absl::StrCat("none are made for ", target_.name);
  if (tensor.dtype != tile) return "the types differ";
  if (to.rank() != 2 || to.dims[1] != tensor.rank() - 1 || !tensor.packed.empty() ||
      !IsInt(tensor.strides.back(), 1)) {
    return "the window is not made of rows that run along memory";
  }
  if (tensor.rank() > kMostDims) return absl::StrCat("it has more than ", kMostDims, " dims");
  if (to.extents[0] == 0 || to.extents[0] % kPeriod != 0) {
    return absl::StrCat(to.extents[0], " rows are no multiple of ", kPeriod);
  }
  if (to.extents[1] == 0 || to.extents[1] * bytes % kSmallestRow != 0) {
    return absl::StrCat("rows of ", to.extents[1] * bytes, " bytes are no multiple of ",
                        kSmallestRow);
  }
  const bool never =
      std::any_of(tensor.strides.begin(), tensor.strides.end() - 1, [&](const ExprRef& stride) {
        const int64_t* elements = IntValue(stride);
        return elements && *elements * bytes % kAlignment != 0;
      });
  if (never) return absl::StrCat("its strides are no multiples of ", kAlignment, " bytes");
  const auto use = uses_.find(to.buffer);
  if (use == uses_.end() || use->second.read || use->second.writes != 1) {
    return "the launch also reads it or writes it elsewhere";
  }
  if (use->second.in_group) return "groups store on their own";
  if (rows && use->second.in_loop) return "it leaves rows out in a loop";
  return "";
}

std::string BulkStores::WhyNot(const Copy& copy) const {
  const Buffer& tile = module_.buffer(copy.src.buffer);
  if (copy.transpose) return "it transposes";
  if (tile.rank() != 2 || !IsWhole(tile, copy.src)) return "it takes a part of its tile";
  return WhyNot(tile.dtype, copy.dst, copy.rows);
}

bool BulkStores::Repeats(BufferId tensor) const {
  const auto use = uses_.find(tensor);
  return use != uses_.end() && use->second.in_loop;
}

}  // namespace tl
