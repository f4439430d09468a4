// Tiles, windows and elements: which buffer an expression names, at which offsets, along which
// dims.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ir/binder.h"

namespace tl {

using syntax::ExprKind;

namespace {

bool IsZero(const syntax::ExprRef& e) { return e->kind == ExprKind::kInt && e->int_value == 0; }

// True if `offset`, as written, is a multiple of `extent`, as written: 0, the extent, a product
// with it, or a sum of such. Deliberately about the text and not about values: the meaning of a
// program must not change with its parameters.
bool IsMultipleAsWritten(const syntax::ExprRef& offset, const std::string& extent) {
  if (IsZero(offset) || syntax::Print(offset) == extent) return true;
  if (offset->kind != ExprKind::kBinary) return false;
  const auto& args = offset->args;
  if (offset->text == "*")
    return IsMultipleAsWritten(args[0], extent) || IsMultipleAsWritten(args[1], extent);
  if (offset->text == "+" || offset->text == "-") {
    return IsMultipleAsWritten(args[0], extent) && IsMultipleAsWritten(args[1], extent);
  }
  return false;
}

// All ways to put `tile_rank` window dims, in order, on buffer dims for which fits[i][d]; stops at
// two.
void PlaceDims(const std::vector<std::vector<bool>>& fits, size_t i, int from,
               std::vector<int>& chosen, std::vector<std::vector<int>>& found) {
  if (found.size() > 1) return;
  if (i == fits.size()) {
    found.push_back(chosen);
    return;
  }
  for (int d = from; d < static_cast<int>(fits[i].size()); ++d) {
    if (!fits[i][d]) continue;
    chosen.push_back(d);
    PlaceDims(fits, i + 1, d + 1, chosen, found);
    chosen.pop_back();
  }
}

// What literals say is checked here, the rest by the reference.
Status CheckIndex(const ExprRef& index, int dim, int64_t size, std::string_view name, Span span) {
  const int64_t* v = IntValue(index);
  if (!v || (*v >= 0 && *v < size)) return absl::OkStatus();
  return SemanticError(span, absl::StrCat("index ", *v, " is outside dim ", dim, " of '", name,
                                          "', which has ", size, " elements"));
}

Status CheckWindow(const ExprRef& offset, int64_t extent, int dim, int64_t size,
                   std::string_view name, Span span) {
  const int64_t* v = IntValue(offset);
  const int64_t begin = v ? *v : 0;
  if (begin >= 0 && begin <= size - extent) return absl::OkStatus();
  return SemanticError(
      span, absl::StrCat("a window of ", extent, " at ", begin, " does not fit into dim ", dim,
                         " of '", name, "', which has ", size, " elements"));
}

}  // namespace

std::string ExtentsText(const std::vector<int64_t>& extents) {
  return absl::StrCat("[", absl::StrJoin(extents, ", "), "]");
}

StatusOr<const Binding*> Binder::LookupBuffer(const syntax::ExprRef& e) const {
  if (e->kind != ExprKind::kName && e->kind != ExprKind::kIndex) {
    return SemanticError(e->span,
                         absl::StrCat("expected a tensor or tile, found '", syntax::Print(e), "'"));
  }
  const Binding* symbol = Lookup(e->text);
  if (!symbol) return UnknownName(e->text, e->span);
  if (symbol->kind == Binding::Kind::kAbsent) {
    return SemanticError(
        e->span, absl::StrCat("operand '", e->text, "' is left out because its condition at ",
                              FormatSpan(symbol->span), " is false; guard this with the same if"));
  }
  if (symbol->kind != Binding::Kind::kBuffer && symbol->kind != Binding::Kind::kView) {
    return SemanticError(e->span, absl::StrCat("'", e->text, "' is no tensor or tile"));
  }
  return symbol;
}

Region Binder::WholeRegion(BufferId id, Span span) const {
  Region region{
      .buffer = id, .offset = {}, .dims = {}, .extents = buffer(id).extents, .span = span};
  for (int d = 0; d < buffer(id).rank(); ++d) {
    region.offset.push_back(MakeInt(0));
    region.dims.push_back(d);
  }
  return region;
}

StatusOr<Binder::Element> Binder::BindElement(const syntax::ExprRef& e) {
  TL_ASSIGN_OR_RETURN(const Binding* symbol, LookupBuffer(e));
  const bool is_view = symbol->kind == Binding::Kind::kView;
  const BufferId id = is_view ? symbol->view.buffer : symbol->buffer;
  const int rank = is_view ? symbol->view.rank() : buffer(id).rank();
  if (static_cast<int>(e->args.size()) != rank) {
    return SemanticError(
        e->span, absl::StrCat("'", e->text, "' has ", rank, rank == 1 ? " dim" : " dims", ", but ",
                              e->args.size(), " are indexed"));
  }
  Element element{id, {}};
  if (is_view) {
    TL_RETURN_IF_ERROR(Expand(*symbol, e->span));
    element.index = symbol->view.offset;
  }
  for (int i = 0; i < rank; ++i) {
    if (i < static_cast<int>(e->marks.size()) && e->marks[i]) {
      return SemanticError(e->args[i]->span, "':' marks the dims of a window; an element has none");
    }
    TL_ASSIGN_OR_RETURN(ExprRef index, BindInt(e->args[i], "an index"));
    if (is_view) {
      TL_RETURN_IF_ERROR(CheckIndex(index, i, symbol->view.extents[i], e->text, e->span));
      ExprRef& slot = element.index[symbol->view.dims[i]];
      slot = MakeBinary(BinaryOp::kAdd, slot, index);
    } else {
      element.index.push_back(std::move(index));
    }
  }
  for (int d = 0; d < buffer(id).rank() && buffer(id).scope != Scope::kGlobal; ++d) {
    TL_RETURN_IF_ERROR(
        CheckIndex(element.index[d], d, buffer(id).extents[d], buffer(id).name, e->span));
  }
  return element;
}

StatusOr<std::optional<Region>> Binder::BindWholeTile(const syntax::ExprRef& e) {
  TL_ASSIGN_OR_RETURN(const Binding* symbol, LookupBuffer(e));
  if (e->kind == ExprKind::kIndex) return std::optional<Region>();
  if (symbol->kind == Binding::Kind::kView) {
    TL_RETURN_IF_ERROR(Expand(*symbol, e->span));
    Region region = symbol->view;
    region.span = e->span;
    return std::optional<Region>(std::move(region));
  }
  if (buffer(symbol->buffer).scope == Scope::kGlobal) return std::optional<Region>();
  if (buffer(symbol->buffer).scope == Scope::kChannel) {
    return SemanticError(e->span, absl::StrCat("'", e->text, "' is a channel; use send and recv"));
  }
  return std::optional<Region>(WholeRegion(symbol->buffer, e->span));
}

StatusOr<Region> Binder::BindTile(const syntax::ExprRef& e) {
  TL_ASSIGN_OR_RETURN(std::optional<Region> region, BindWholeTile(e));
  if (region) return *std::move(region);
  return SemanticError(
      e->span,
      absl::StrCat("expected a tile, found '", syntax::Print(e),
                   "'; copy tensors to a tile first, and name windows of tiles with view"));
}

std::vector<syntax::ExprRef> Binder::WrittenExtents(const syntax::ExprRef& e) const {
  const Binding* symbol = e->kind == ExprKind::kName ? Lookup(e->text) : nullptr;
  return symbol ? symbol->extents_as_written : std::vector<syntax::ExprRef>();
}

StatusOr<std::vector<int>> Binder::WindowDims(const syntax::ExprRef& e,
                                              const std::vector<int64_t>& extents,
                                              const std::vector<syntax::ExprRef>& written) const {
  const int rank = static_cast<int>(e->args.size());
  const int tile_rank = static_cast<int>(extents.size());
  std::vector<int> dims;
  for (int d = 0; d < rank; ++d) {
    if (d < static_cast<int>(e->marks.size()) && e->marks[d]) dims.push_back(d);
  }
  const std::string wants = absl::StrCat("the tile has ", tile_rank,
                                         tile_rank == 1 ? " dim " : " dims ", ExtentsText(extents));
  if (!dims.empty()) {
    if (static_cast<int>(dims.size()) == tile_rank) return dims;
    return SemanticError(e->span, absl::StrCat(dims.size(), " dims of '", e->text,
                                               "' are marked with ':', but ", wants));
  }
  if (tile_rank > rank) {
    return SemanticError(e->span, absl::StrCat("'", e->text, "' has ", rank, " dims, but ", wants));
  }
  if (tile_rank == rank) {
    for (int d = 0; d < rank; ++d) dims.push_back(d);
    return dims;
  }
  std::vector<std::vector<bool>> fits(tile_rank, std::vector<bool>(rank, false));
  for (int i = 0; i < tile_rank; ++i) {
    const std::string extent =
        i < static_cast<int>(written.size()) ? syntax::Print(written[i]) : "";
    for (int d = 0; d < rank; ++d)
      fits[i][d] = !extent.empty() && IsMultipleAsWritten(e->args[d], extent);
  }
  std::vector<std::vector<int>> found;
  PlaceDims(fits, 0, 0, dims, found);
  if (found.size() == 1) return found[0];
  const bool single = std::all_of(extents.begin(), extents.end(), [](int64_t n) { return n == 1; });
  if (single) {
    std::vector<int> last;
    for (int i = 0; i < tile_rank; ++i) last.push_back(rank - tile_rank + i);
    return last;
  }
  return SemanticError(
      e->span, absl::StrCat(found.empty() ? "it is not evident" : "it is ambiguous",
                            " along which dims of '", e->text, "' the window runs (", wants,
                            "); mark them with ':' behind the offset, as in ", e->text, "[…, ",
                            syntax::Print(e->args[rank - 1]), ":]"));
}

Status Binder::CheckInsideTile(const Region& region) const {
  const Buffer& b = buffer(region.buffer);
  if (b.scope == Scope::kGlobal) return absl::OkStatus();
  std::vector<int64_t> extent(b.rank(), 1);
  for (int i = 0; i < region.rank(); ++i) extent[region.dims[i]] = region.extents[i];
  for (int d = 0; d < b.rank(); ++d) {
    TL_RETURN_IF_ERROR(
        CheckWindow(region.offset[d], extent[d], d, b.extents[d], b.name, region.span));
  }
  return absl::OkStatus();
}

StatusOr<Region> Binder::BindWindow(const syntax::ExprRef& e, const std::vector<int64_t>& extents,
                                    const std::vector<syntax::ExprRef>& written) {
  TL_ASSIGN_OR_RETURN(const Binding* symbol, LookupBuffer(e));
  const bool is_view = symbol->kind == Binding::Kind::kView;
  const BufferId id = is_view ? symbol->view.buffer : symbol->buffer;
  if (buffer(id).scope == Scope::kChannel) {
    return SemanticError(e->span, absl::StrCat("'", e->text, "' is a channel; use send and recv"));
  }
  const int rank = is_view ? symbol->view.rank() : buffer(id).rank();
  syntax::ExprRef at = e;
  if (e->kind == ExprKind::kName) {  // a whole tensor: a window at offset 0
    auto whole = std::make_shared<syntax::Expr>(*e);
    whole->kind = ExprKind::kIndex;
    auto zero =
        std::make_shared<syntax::Expr>(syntax::Expr{.kind = ExprKind::kInt, .span = e->span});
    whole->args.assign(rank, zero);
    at = whole;
  }
  if (static_cast<int>(at->args.size()) != rank) {
    return SemanticError(
        e->span, absl::StrCat("'", e->text, "' has ", rank, rank == 1 ? " dim" : " dims", ", but ",
                              at->args.size(), " offsets are given"));
  }
  TL_ASSIGN_OR_RETURN(std::vector<int> dims, WindowDims(at, extents, written));
  Region region{.buffer = id, .offset = {}, .dims = {}, .extents = extents, .span = e->span};
  if (is_view) {
    TL_RETURN_IF_ERROR(Expand(*symbol, e->span));
    region.offset = symbol->view.offset;
  }
  std::vector<int64_t> window(rank, 1);
  for (size_t i = 0; i < dims.size(); ++i) window[dims[i]] = extents[i];
  for (int i = 0; i < rank; ++i) {
    TL_ASSIGN_OR_RETURN(ExprRef offset, BindInt(at->args[i], "an offset"));
    if (is_view) {
      TL_RETURN_IF_ERROR(
          CheckWindow(offset, window[i], i, symbol->view.extents[i], e->text, e->span));
      ExprRef& slot = region.offset[symbol->view.dims[i]];
      slot = MakeBinary(BinaryOp::kAdd, slot, offset);
    } else {
      region.offset.push_back(std::move(offset));
    }
  }
  for (int d : dims) region.dims.push_back(is_view ? symbol->view.dims[d] : d);
  TL_RETURN_IF_ERROR(CheckInsideTile(region));
  return region;
}

}  // namespace tl
