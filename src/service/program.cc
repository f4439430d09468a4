#include "service/program.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"

namespace tl {

StatusOr<LoadedKernel*> Program::Load(int ordinal) {
  if (ordinal < 0 || ordinal >= kMaxOrdinals) {
    return absl::OutOfRangeError(absl::StrCat("device ordinal ", ordinal, " is not supported"));
  }
  if (LoadedKernel* kernel = loaded(ordinal)) return kernel;
  absl::MutexLock lock(&mu_);
  if (LoadedKernel* kernel = loaded(ordinal)) return kernel;
  TL_ASSIGN_OR_RETURN(std::unique_ptr<LoadedKernel> kernel,
                      backend_->Load(artifact_.binary, entries_, *module_, ordinal));
  owned_.push_back(std::move(kernel));
  loaded_[ordinal].store(owned_.back().get(), std::memory_order_release);
  return owned_.back().get();
}

namespace {

nlohmann::json WriteBoxes(const std::vector<BoxOfTensor>& boxes) {
  nlohmann::json list = nlohmann::json::array();
  for (const BoxOfTensor& box : boxes) {
    list.push_back(
        {{"tensor", box.tensor}, {"extents", box.extents}, {"row_bytes", box.row_bytes}});
  }
  return list;
}

// False: they are not what WriteBoxes has written for a module with these tensors.
bool ReadBoxes(const nlohmann::json& list, std::vector<BoxOfTensor>& boxes) {
  if (!list.is_array()) return false;
  for (const nlohmann::json& b : list) {
    const bool ok = b.is_object() && b.contains("tensor") && b["tensor"].is_number_unsigned() &&
                    b.contains("row_bytes") && b["row_bytes"].is_number_integer() &&
                    b.contains("extents") && b["extents"].is_array();
    if (!ok) return false;
    BoxOfTensor box{b["tensor"].get<int>(), {}, b["row_bytes"].get<int>()};
    for (const nlohmann::json& e : b["extents"]) {
      if (!e.is_number_integer()) return false;
      box.extents.push_back(e.get<int64_t>());
    }
    boxes.push_back(std::move(box));
  }
  return true;
}

}  // namespace

std::string WriteMetadata(const Module& module, const std::vector<Entry>& entries) {
  nlohmann::json list = nlohmann::json::array();
  for (const Entry& e : entries) {
    list.push_back({{"symbol", e.symbol},
                    {"threads", e.threads},
                    {"groups", e.groups},
                    {"shared_bytes", e.shared_bytes},
                    {"producers", e.producers},
                    {"persistent", e.persistent},
                    {"early", e.early},
                    {"cluster", e.cluster},
                    {"boxes", WriteBoxes(e.boxes)}});
  }
  nlohmann::json parameters = nlohmann::json::object();
  for (const BoundParam& p : module.params) parameters[p.name] = p.value;
  return nlohmann::json{{"entries", list}, {"kernel", module.name}, {"parameters", parameters}}
      .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

StatusOr<std::vector<Entry>> ReadMetadata(std::string_view text, size_t num_launches) {
  const Status bad = absl::DataLossError("the metadata of a cache entry cannot be read");
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("entries") || !json["entries"].is_array()) return bad;
  std::vector<Entry> entries;
  for (const nlohmann::json& e : json["entries"]) {
    const bool ok = e.is_object() && e.contains("symbol") && e["symbol"].is_string() &&
                    e.contains("threads") && e["threads"].is_number_integer() &&
                    e.contains("groups") && e["groups"].is_number_integer() &&
                    e.contains("shared_bytes") && e["shared_bytes"].is_number_integer() &&
                    e.contains("producers") && e["producers"].is_number_integer() &&
                    e.contains("persistent") && e["persistent"].is_boolean();
    if (!ok) return bad;
    Entry entry{.symbol = e["symbol"].get<std::string>(),
                .threads = e["threads"].get<int>(),
                .groups = e["groups"].get<int>(),
                .shared_bytes = e["shared_bytes"].get<int64_t>(),
                .producers = e["producers"].get<int>(),
                .persistent = e["persistent"].get<bool>(),
                .boxes = {},
                .early = false};
    if (!e.contains("boxes") || !ReadBoxes(e["boxes"], entry.boxes)) return bad;
    if (!e.contains("early") || !e["early"].is_boolean()) return bad;
    entry.early = e["early"].get<bool>();
    if (!e.contains("cluster") || !e["cluster"].is_number_integer()) return bad;
    entry.cluster = e["cluster"].get<int>();
    if (entry.cluster < 1) return bad;
    entries.push_back(std::move(entry));
  }
  if (entries.size() != num_launches) return bad;
  return entries;
}

}  // namespace tl
