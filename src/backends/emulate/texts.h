// Texts that surround a kernel compiled for the host.
#ifndef TILEJIT_BACKENDS_EMULATE_TEXTS_H_
#define TILEJIT_BACKENDS_EMULATE_TEXTS_H_

#include <string_view>

namespace tl {

std::string_view EmulatorApi();         // api.h
std::string_view EmulatedPrimitives();  // primitives.h
std::string_view EmulatedHopper();      // hopper.h
std::string_view EmulatedHip();         // hip.h
std::string_view EmulatedAtomics();     // atomics.h
std::string_view EmulatorEntry();       // entry.h

}  // namespace tl

#endif  // TILEJIT_BACKENDS_EMULATE_TEXTS_H_
