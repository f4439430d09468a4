// Leaves out what a failure does not need.
#include <utility>

#include "ir/syntax.h"
#include "tests/generator/differential.h"

namespace tl::generator {
namespace {

using syntax::Stmt;

// Calls visit(list, index) for every statement; false stops.
template <typename Fn>
bool EachStatement(std::vector<Stmt>& list, Fn& visit) {
  for (size_t i = 0; i < list.size(); ++i) {
    if (!visit(list, i)) return false;
    if (i >= list.size()) break;
    if (!EachStatement(list[i].body, visit) || !EachStatement(list[i].else_body, visit))
      return false;
  }
  return true;
}

// Number `which` of all ways to make the program smaller by one step; false: there are fewer.
bool Shrink(syntax::Program& program, size_t which) {
  size_t at = 0;
  for (size_t l = 0; l < program.launches.size(); ++l) {
    if (program.launches.size() > 1 && at++ == which) {
      program.launches.erase(program.launches.begin() + static_cast<int64_t>(l));
      return true;
    }
    auto visit = [&](std::vector<Stmt>& list, size_t i) {
      if (at++ == which) {
        list.erase(list.begin() + static_cast<int64_t>(i));
        return false;
      }
      if (list[i].has_else && at++ == which) {
        list[i].has_else = false;
        list[i].else_body.clear();
        return false;
      }
      if (!list[i].attrs.empty() && at++ == which) {
        list[i].attrs.pop_back();
        return false;
      }
      return true;
    };
    if (!EachStatement(program.launches[l].body, visit)) return true;
    if (!program.launches[l].attrs.empty() && at++ == which) {
      program.launches[l].attrs.pop_back();
      return true;
    }
  }
  for (size_t d = 0; d < program.decls.size(); ++d) {
    if (at++ != which) continue;
    program.decls.erase(program.decls.begin() + static_cast<int64_t>(d));
    return true;
  }
  return false;
}

}  // namespace

Program Minimize(const Program& program, const Outcome& outcome,
                 const std::function<Outcome(const Program&)>& run) {
  Program best = program;
  StatusOr<syntax::Program> parsed = syntax::Parse(program.text);
  if (!parsed.ok()) return best;
  for (size_t which = 0;;) {
    syntax::Program smaller = *parsed;
    if (!Shrink(smaller, which)) return best;
    Program candidate = best;
    candidate.text = syntax::Print(smaller);
    const Outcome o = run(candidate);
    if (o.verdict == outcome.verdict && o.where == outcome.where && o.kind == outcome.kind) {
      best = std::move(candidate);
      parsed = std::move(smaller);
    } else {
      ++which;
    }
  }
}

}  // namespace tl::generator
