// A bound Module as text of the language.
#ifndef TILEJIT_IR_UNPARSE_H_
#define TILEJIT_IR_UNPARSE_H_

#include <string>

#include "ir/module.h"
#include "ir/syntax.h"

namespace tl {

// A program that binds (with no values) to the same Module: parameters and tune choices are
// literals, untaken branches are gone, windows carry explicit marks. Level Tile only.
syntax::Program Unparse(const Module& module);

// The same with every name replaced by its number in order of definition: what two programs share
// that differ in comments, spacing, names or unused parameters only. Input of the cache key.
std::string CanonicalText(const Module& module);

// For people, any level: Print(Unparse(module)) at level Tile, a listing of the scalar statements
// at level Thread.
std::string ToText(const Module& module);

// One expression, in the caller's names.
std::string ToText(const Module& module, const ExprRef& expr);

}  // namespace tl

#endif  // TILEJIT_IR_UNPARSE_H_
