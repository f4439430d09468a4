// Walking and rewriting expression and statement trees. Trees are immutable: a rewrite builds new
// nodes where something changed and shares the rest.
#ifndef TILEJIT_IR_VISIT_H_
#define TILEJIT_IR_VISIT_H_

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "ir/expr.h"
#include "ir/module.h"

namespace tl {

// ---- Expressions

// Every node of `e`, parents before children.
void VisitExpr(const ExprRef& e, absl::FunctionRef<void(const ExprRef&)> visit);

// `e` with every direct child replaced by map(child); constants fold again.
ExprRef MapChildren(const ExprRef& e, absl::FunctionRef<ExprRef(const ExprRef&)> map);

// Bottom-up: `rewrite` gets each node with its children already rewritten and returns the node's
// replacement, or null to keep it.
ExprRef RewriteExpr(const ExprRef& e, absl::FunctionRef<ExprRef(const ExprRef&)> rewrite);

bool AnyNode(const ExprRef& e, absl::FunctionRef<bool(const ExprRef&)> test);
bool HasLoad(const ExprRef& e);

// ---- Statements

// The expressions of one statement, without those of the statements nested in it; offsets of
// regions count. A null `rows` is skipped.
void VisitStmtExprs(const Stmt& s, absl::FunctionRef<void(const ExprRef&)> visit);
// The regions of one statement; `write` tells destinations.
void VisitRegions(const Stmt& s, absl::FunctionRef<void(const Region&, bool write)> visit);
// The statement lists nested directly in one statement.
void VisitBlocks(const Stmt& s, absl::FunctionRef<void(const Block&)> visit);
// Level Thread: the elements that one statement touches, besides the Loads in its expressions; the
// offset is that of the first element.
void VisitAccesses(const Stmt& s,
                   absl::FunctionRef<void(BufferId, const ExprRef& offset, bool write)> visit);
// Every statement of `block` and of the blocks in it, in program order, parents first.
void VisitStmts(const Block& block, absl::FunctionRef<void(const StmtRef&)> visit);
// Every expression anywhere below `block`.
void VisitAllExprs(const Block& block, absl::FunctionRef<void(const ExprRef&)> visit);

// How the parts of a statement are rewritten.
class StmtMapper {
 public:
  virtual ~StmtMapper() = default;
  virtual ExprRef MapExpr(const ExprRef& e) { return e; }
  virtual Region MapRegion(const Region& r);          // default: MapExpr on the offsets
  virtual Block MapBlock(const Block& b);             // default: MapStmt on each statement
  virtual VarId MapDefinition(VarId v) { return v; }  // Let, loops, parallel, on, ChannelAcquire
  virtual VarId MapAssigned(VarId v) { return v; }    // Assign
  virtual BufferId MapBuffer(BufferId b) { return b; }
  // One statement, id and span kept; the default rebuilds it of mapped parts.
  virtual StmtRef MapStmt(const StmtRef& s);
};

// ---- Copies

// What a copied block refers to instead.
struct Substitution {
  absl::flat_hash_map<VarId, ExprRef> vars;  // read as; an assigned var must map to a VarRef
  // Tiles: `to`, with `prefix` before every index (and offset).
  struct Tile {
    BufferId to;
    std::vector<ExprRef> prefix;
  };
  absl::flat_hash_map<BufferId, Tile> tiles;
};

ExprRef Substitute(const Module& module, const ExprRef& e, const Substitution& substitution);
// A copy of `block` under `substitution` in which everything the block defines (lets, loop
// variables, tiles) has new ids, so that original and copy can stand in one program. A channel
// stays the one that it is, wherever it is entered.
Block CloneBlock(Module& module, const Block& block, Substitution substitution);

}  // namespace tl

#endif  // TILEJIT_IR_VISIT_H_
