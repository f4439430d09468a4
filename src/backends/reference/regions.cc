// Windows into tiles and tensors.
#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "backends/reference/agent.h"

namespace tl::reference {

Tile* Agent::FindTile(BufferId id, const Span& span) {
  if (buffer(id).scope == Scope::kGlobal) {
    Fail(span, absl::StrCat("expected a tile, found tensor ", Quoted(id)));
    return nullptr;
  }
  if (tiles_[id] == nullptr)
    Fail(span, absl::StrCat("tile ", Quoted(id), " is used before its alloc"));
  return tiles_[id];
}

bool Agent::CheckReadable(BufferId id, const Span& span) {
  const Tile* tile = tiles_[id];
  if (tile == nullptr || tile->readable) return true;
  Fail(span,
       absl::StrCat("reducer ", Quoted(id), " is read before 'finish ", buffer(id).name, "'"));
  return false;
}

bool Agent::EvalOffsets(const Region& region, const Span& span, Index* offset) {
  *offset = Index{};
  for (size_t d = 0; d < region.offset.size(); ++d) {
    const Value v = Eval(region.offset[d]);
    if (v.undefined != kNoId && !failed()) {
      Fail(region.span.valid() ? region.span : span,
           absl::StrCat("an offset into ", Quoted(region.buffer), " depends on an element of ",
                        Quoted(v.undefined), " that nothing has written"));
    }
    (*offset)[d] = v.c.i;
  }
  return !failed();
}

bool Agent::View(const Region& region, const Span& span, TileView* view) {
  Tile* tile = FindTile(region.buffer, span);
  Index offset;
  if (tile == nullptr || !EvalOffsets(region, span, &offset)) return false;
  const Buffer& b = buffer(region.buffer);
  const TileView whole = ViewOf(region.buffer, b.dtype, b.extents, &tile->data);
  *view = whole;
  view->rank = region.rank();
  view->extent = Index{};
  view->stride = Index{};
  Index last = offset;
  for (int i = 0; i < region.rank(); ++i) {
    view->extent[i] = region.extents[i];
    view->stride[i] = whole.stride[region.dims[i]];
    last[region.dims[i]] += region.extents[i] - 1;
  }
  for (int d = 0; d < whole.rank; ++d) {
    if (offset[d] >= 0 && last[d] < whole.extent[d]) continue;
    Fail(region.span.valid() ? region.span : span,
         absl::StrCat("window of ", b.name, " covers ", offset[d], " to ", last[d], " in dim ", d,
                      ", outside its shape [", absl::StrJoin(b.extents, ", "), "]"));
    return false;
  }
  const int64_t at = whole.At(offset);
  view->cell += at;
  if (view->def != nullptr) {
    view->err += at;
    view->def += at;
  }
  return true;
}

bool Agent::ReadView(const Region& region, const Span& span, TileView* view) {
  return CheckReadable(region.buffer, span) && View(region, span, view);
}

bool Agent::CheckDefinedOutput(BufferId dst, const TileView& row, int64_t n, const Span& span) {
  if (row.def == nullptr || buffer(dst).role == BufferRole::kWorkspace) return true;
  for (int64_t i = 0; i < n; ++i) {
    if (row.def[i * row.stride[0]]) continue;
    Fail(span, absl::StrCat("copies to '", buffer(dst).name, "' elements of ", Quoted(row.id),
                            " that nothing has written"));
    return false;
  }
  return true;
}

}  // namespace tl::reference
