// `owner=group`: each group of a persistent block works on a tile of its own, so that one group's
// results leave while another multiplies. Statements of a tile are those of `on g`: shared tiles
// are each group's own, but for the slots of rings that a producer fills for all of them in the
// order of tiles.
#ifndef TILEJIT_PASSES_OWN_TILES_H_
#define TILEJIT_PASSES_OWN_TILES_H_

#include "base/target.h"
#include "ir/module.h"

namespace tl {

// Where the target has no groups, or the launch has one, blocks own the tiles.
void SettleOwner(Module& module, const Target& target, Launch& launch);

// The launch is expanded: a loop over tiles (expand_persistent). It becomes
//
//     on g in groups {
//       serial i in … {
//         block = …
//         owns = i % groups == g
//         if owns { … }
//       }
//     }
void GiveTilesToGroups(Module& module, Launch& launch);

// Is this the branch of the tile's owner?
bool IsOfOwner(const Launch& launch, const If& branch);

// Groups that share rings read them one after the other, in the order of tiles: a slot's phase is
// told from the one before alone, so nobody may wait for a slot while another has yet to see it
// filled before.
class OwnersTurns {
 public:
  // `warps`: of a group.
  OwnersTurns(Module& module, const Launch& launch, int warps);

  // What the launch begins with.
  StmtRef Allocate() const;
  // What a group begins with; `group`: its number.
  StmtRef First(const ExprRef& group) const;
  // A turn from the first wait for a slot to the last one.
  Block Take(const Block& tile, const ExprRef& group) const;

 private:
  Block Wait(const ExprRef& group) const;
  Block Pass(const ExprRef& group) const;
  ExprRef Parity() const;

  const int groups_;
  BufferId barriers_;
  VarId parity_;  // of the phase that ends as this group's next turn begins
};

}  // namespace tl

#endif  // TILEJIT_PASSES_OWN_TILES_H_
