// Layouts by name, drawn. For people who learn or debug layouts; no kernel needs it.
#ifndef TILEJIT_SERVICE_LAYOUT_PICTURE_H_
#define TILEJIT_SERVICE_LAYOUT_PICTURE_H_

#include <string>
#include <string_view>

#include "base/status.h"

namespace tl {

// SVG text. Names are fields with colons between them, as include/tl/tl.h lists them at
// tl_layout_svg; anything else is INVALID_ARGUMENT with what would be right.
StatusOr<std::string> LayoutSvg(std::string_view name);

}  // namespace tl

#endif  // TILEJIT_SERVICE_LAYOUT_PICTURE_H_
