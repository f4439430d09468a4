// Fragments that change their layout within warps, by exchanges between lanes.
#ifndef TILEJIT_PASSES_EXCHANGE_REGISTERS_H_
#define TILEJIT_PASSES_EXCHANGE_REGISTERS_H_

#include "passes/lowering.h"

namespace tl {

// Do the layouts differ by a permutation of bits only: of the lane's number, of the slot's, or
// between them?
bool IsExchange(const FragmentLayout& from, const FragmentLayout& to);

// `registers` holds a fragment as `from` says; afterwards as `to` says. Needs IsExchange.
void ExchangeRegisters(Lowering& l, BufferId registers, const FragmentLayout& from,
                       const FragmentLayout& to);

}  // namespace tl

#endif  // TILEJIT_PASSES_EXCHANGE_REGISTERS_H_
