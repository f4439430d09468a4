#include "backends/c_family/prelude.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "backends/c_family/dialect.h"

namespace tl {
namespace {

constexpr std::string_view kBegin = "//@ ";

bool InWord(char c) { return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_'; }

PreludePart PartOf(std::string_view head) {
  PreludePart part;
  part.names = absl::StrSplit(head, ' ', absl::SkipEmpty());
  const auto with = std::find(part.names.begin(), part.names.end(), "with");
  if (with != part.names.end()) {
    part.with = part.names.back();
    part.names.erase(with, part.names.end());
  }
  return part;
}

class Selection {
 public:
  explicit Selection(std::vector<PreludePart> parts)
      : parts_(std::move(parts)), wanted_(parts_.size()) {
    for (const PreludePart& part : parts_) {
      for (std::string_view name : part.names) known_.insert(name);
      if (!part.with.empty()) known_.insert(part.with);
    }
  }

  void Mention(std::string_view text) {
    for (Scan(text); TakeWanted();) {
    }
  }

  std::string Text() const {
    std::string text;
    for (size_t i = 0; i < parts_.size(); ++i) {
      if (wanted_[i]) absl::StrAppend(&text, parts_[i].text);
    }
    return text;
  }

 private:
  void Scan(std::string_view text) {
    for (size_t at = 0; at < text.size();) {
      size_t end = at;
      while (end < text.size() && InWord(text[end])) ++end;
      const std::string_view word = text.substr(at, end - at);
      if (known_.contains(word)) mentioned_.insert(word);
      at = end + (end == at);
    }
  }

  bool Wants(const PreludePart& part) const {
    const auto mentioned = [&](std::string_view name) { return mentioned_.contains(name); };
    if (!part.with.empty() && !mentioned(part.with)) return false;
    return part.names.empty() || std::any_of(part.names.begin(), part.names.end(), mentioned);
  }

  // Takes the parts whose names have come up; false if there are no new ones.
  bool TakeWanted() {
    bool any = false;
    for (size_t i = 0; i < parts_.size(); ++i) {
      if (wanted_[i] || !Wants(parts_[i])) continue;
      any = wanted_[i] = true;
      Scan(parts_[i].text);
    }
    return any;
  }

  const std::vector<PreludePart> parts_;
  std::vector<bool> wanted_;
  absl::flat_hash_set<std::string_view> known_, mentioned_;
};

}  // namespace

std::vector<PreludePart> PartsOf(std::string_view prelude) {
  std::vector<PreludePart> parts(1);
  const char* begin = prelude.data();
  for (std::string_view line : absl::StrSplit(prelude, '\n')) {
    if (line.substr(0, kBegin.size()) != kBegin) continue;
    parts.back().text = std::string_view(begin, line.data() - begin);
    parts.push_back(PartOf(line.substr(kBegin.size())));
    begin = line.data() + line.size() + 1;
  }
  parts.back().text = std::string_view(begin, prelude.data() + prelude.size() - begin);
  return parts;
}

std::string SelectParts(std::string_view prelude, std::string_view text) {
  Selection selection(PartsOf(prelude));
  selection.Mention(text);
  return selection.Text();
}

std::string WithPrelude(std::string_view primitives, std::string_view kernels,
                        std::string_view functions) {
  const std::string all = absl::StrCat(primitives, NumericsPrelude());
  return absl::StrCat(SelectParts(all, absl::StrCat(functions, kernels)), functions, kProgramMark,
                      kernels);
}

std::string_view WithoutPrelude(std::string_view source) {
  const size_t at = source.find(kProgramMark);
  return at == std::string_view::npos ? source : source.substr(at + kProgramMark.size());
}

}  // namespace tl
