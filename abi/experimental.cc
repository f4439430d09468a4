// Pictures of layouts, and the main function of the helper program.
#define TL_EXPERIMENTAL
#include <string>

#include "abi/error.h"
#include "service/layout_picture.h"
#include "service/worker_main.h"

tl_status tl_layout_svg(const char* name, const char** data, size_t* size) {
  thread_local std::string svg;
  return tl::abi::Call([&]() -> tl::Status {
    if (!data || !size) return absl::InvalidArgumentError("data or size is NULL");
    *data = nullptr;
    *size = 0;
    if (!name) return absl::InvalidArgumentError("name is NULL");
    TL_ASSIGN_OR_RETURN(svg, tl::LayoutSvg(name));
    *data = svg.c_str();
    *size = svg.size();
    return absl::OkStatus();
  });
}

int32_t tl_worker_main(int32_t fd) { return tl::WorkerMain(fd); }
