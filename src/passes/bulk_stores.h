// Which copies to tensors may leave in boxes (BulkStore), where a launch asks for that.
#ifndef TILEJIT_PASSES_BULK_STORES_H_
#define TILEJIT_PASSES_BULK_STORES_H_

#include <string>

#include "absl/container/flat_hash_map.h"
#include "base/dtype.h"
#include "base/target.h"
#include "ir/module.h"

namespace tl {

// A launch's tensors, level Tile to Planned. A box is written in its own time, so that nothing else
// in the launch may touch its tensor: one statement writes it, none reads it.
class BulkStores {
 public:
  BulkStores(const Module& module, const Target& target, const Launch& launch);

  // The launch asks for them.
  bool wanted() const { return wanted_; }
  // What keeps a tile of this type from leaving in boxes for the window `to` of a tensor, cut to
  // `rows` (may be null). Empty: nothing, if the tile's rows lie in panels.
  std::string WhyNot(DType tile, const Region& to, const ExprRef& rows) const;
  // The same of a copy from a tile in shared memory.
  std::string WhyNot(const Copy& copy) const;
  // The only store stands in a loop of the program's: the next iteration may write the same place.
  bool Repeats(BufferId tensor) const;

 private:
  struct Use {
    int writes = 0;
    bool read = false, in_loop = false, in_group = false;
  };
  struct Place {
    bool in_loop = false, in_group = false;
  };
  void Walk(const Block& block, Place place);
  void NoteRead(BufferId id);
  void NoteWrite(BufferId id, Place place);
  bool GoesThroughTiles(const For& loop) const;

  const Module& module_;
  const Target& target_;
  bool wanted_;
  VarId block_;      // of a persistent launch: whose loop goes through its tiles
  bool groups_own_;  // the tiles
  absl::flat_hash_map<BufferId, Use> uses_;  // tensors
};

}  // namespace tl

#endif  // TILEJIT_PASSES_BULK_STORES_H_
