// tl devices: what kernels can run on here, the best first.
#include <cstdio>
#include <memory>

#include "command.h"
#include "nlohmann/json.hpp"

namespace cli {
namespace {

constexpr double kMiB = 1024.0 * 1024.0;

nlohmann::ordered_json Json(int32_t number, const tl_device_info& d) {
  return {{"device", number},
          {"name", d.name},
          {"backend", d.backend},
          {"target", d.target},
          {"ordinal", d.ordinal},
          {"units", d.units},
          {"memory_bytes", d.memory_bytes},
          {"l2_bytes", d.l2_bytes},
          {"max_shared_bytes", d.max_shared_bytes},
          {"clock_khz", d.clock_khz},
          {"memory_clock_khz", d.memory_clock_khz},
          {"driver_version", d.driver_version}};
}

void Print(int32_t number, const tl_device_info& d) {
  std::printf("%d  %-10s %-10s %s", number, d.backend, d.target, d.name);
  if (d.units > 0) std::printf(", %d units", d.units);
  if (d.memory_bytes > 0) std::printf(", %.0f MiB", static_cast<double>(d.memory_bytes) / kMiB);
  if (d.driver_version > 0)
    std::printf(", driver %d.%d", d.driver_version / 1000, d.driver_version % 1000 / 10);
  std::printf("\n");
}

int Devices(bool json) {
  const Context context = MakeContext();
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (int32_t i = 0; i < DeviceCount(context.get()); ++i) {
    const tl_device_info info = DeviceInfo(context.get(), i);
    if (json) {
      list.push_back(Json(i, info));
    } else {
      Print(i, info);
    }
  }
  if (json) std::printf("%s\n", list.dump(2).c_str());
  return kOk;
}

}  // namespace

void AddDevices(CLI::App& app, Session& session) {
  CLI::App* command = app.add_subcommand("devices", "List the devices, the best first");
  const auto json = std::make_shared<bool>(false);
  command->add_flag("--json", *json, "print JSON");
  SetExamples(*command, "  tl devices\n  tl devices --json");
  command->callback([&session, json] { session.run = [json] { return Devices(*json); }; });
}

}  // namespace cli
