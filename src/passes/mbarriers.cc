#include "passes/mbarriers.h"

#include <utility>

namespace tl {

BufferId AddMbarriers(Module& module, std::string name, int64_t count, int arrivals) {
  Buffer b;
  b.name = std::move(name);
  b.scope = Scope::kShared;
  b.role = BufferRole::kMbarriers;
  b.dtype = DType::kI64;
  b.extents = {count};
  b.arrivals = arrivals;
  return module.AddBuffer(std::move(b));
}

}  // namespace tl
