// Pictures of layouts, as the text of an SVG file.
#ifndef TILEJIT_LAYOUT_SVG_H_
#define TILEJIT_LAYOUT_SVG_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "layout/fragment_layout.h"
#include "layout/shared_layout.h"

namespace tl {

// What a picture may hold: elements of a padded tile.
inline constexpr int64_t kMaxPictureElements = 65536;

// Who owns which element. A box is a run of elements that one thread holds in successive registers,
// labelled lane.slot (where there is room), coloured by warp, or by lane where there is one warp.
// Dimensions before the last are drawn as rows.
std::string FragmentSvg(const FragmentLayout& layout, std::string_view title);

// In which banks of shared memory the elements of a row-major tile lie: boxes of 16 bytes, where
// rows are whole chunks, else of one element; labelled by bank, coloured alike where they conflict.
std::string SharedSvg(int64_t rows, int64_t cols, int64_t element_bytes, Swizzle swizzle,
                      std::string_view title);

}  // namespace tl

#endif  // TILEJIT_LAYOUT_SVG_H_
