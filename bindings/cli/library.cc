#include "library.h"

#include <cstdio>
#include <fstream>
#include <iostream>

namespace cli {
namespace {

void Log(void*, tl_log_level level, const char* message) {
  if (level == TL_LOG_INFO) return;
  std::fprintf(stderr, "%s: %s\n", level == TL_LOG_ERROR ? "error" : "warning", message);
}

}  // namespace

Failure LastFailure() {
  tl_error_info info = Sized<tl_error_info>();
  if (tl_last_error(&info) != TL_OK) return {TL_UNKNOWN, TL_REASON_NONE, 0, 0, 0, 0, "unknown", ""};
  return {info.status,   info.reason,     info.line,    info.column,
          info.end_line, info.end_column, info.message, info.log ? info.log : ""};
}

void Check(tl_status status) {
  if (status != TL_OK) throw LastFailure();
}

Context MakeContext(const std::vector<std::string>& packs) {
  tl_context_options options = Sized<tl_context_options>();
  options.log = Log;
  std::vector<const char*> names;
  for (const std::string& pack : packs) names.push_back(pack.c_str());
  options.packs = names.data();
  options.num_packs = names.size();
  tl_context* context = nullptr;
  Check(tl_context_create(&options, &context));
  return Context(context);
}

tl_device_info DeviceInfo(tl_context* context, int32_t device) {
  tl_device_info info = Sized<tl_device_info>();
  Check(tl_device_get(context, device, &info));
  return info;
}

int32_t DeviceCount(tl_context* context) {
  int32_t count = 0;
  Check(tl_device_count(context, &count));
  return count;
}

std::string KernelText(tl_kernel* kernel, tl_text what) {
  const char* data = nullptr;
  size_t size = 0;
  Check(tl_kernel_text(kernel, what, &data, &size));
  return std::string(data, size);
}

void WriteText(const std::string& text, const std::string& path) {
  if (path.empty() || path == "-") {
    std::cout << text << std::flush;
    return;
  }
  std::ofstream out(path, std::ios::binary);
  out << text << std::flush;
  if (!out) throw UsageError("cannot write '" + path + "'");
}

}  // namespace cli
