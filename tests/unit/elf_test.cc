// ELF files read without loading them.
#include "base/elf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/program.h"

namespace tl {
namespace {

using ::testing::Contains;
using ::testing::IsEmpty;

constexpr char kSelf[] = "/proc/self/exe";

TEST(ElfFile, NamesWhatAProgramIsLinkedAgainst) {
  const auto file = ElfFile::Open(kSelf);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_THAT(file->Needed(), Contains("libc.so.6"));
}

TEST(ElfFile, InMemoryAsOnDisk) {
  const std::string bytes = ReadFile(kSelf);
  const auto disk = ElfFile::Open(kSelf), memory = ElfFile::In(bytes);
  ASSERT_TRUE(disk.ok() && memory.ok());
  EXPECT_EQ(memory->Needed(), disk->Needed());
  EXPECT_EQ(memory->Note("GNU", NT_GNU_BUILD_ID), disk->Note("GNU", NT_GNU_BUILD_ID));
  EXPECT_EQ(memory->Note("GNU", 12345), "");
  EXPECT_EQ(memory->Note("Somebody", NT_GNU_BUILD_ID), "");
}

TEST(ElfFile, WhatIsNone) {
  EXPECT_TRUE(absl::IsNotFound(ElfFile::Open("/nowhere").status()));
  EXPECT_TRUE(absl::IsInvalidArgument(ElfFile::In("").status()));
  EXPECT_TRUE(absl::IsInvalidArgument(ElfFile::In("INPUT(libnvrtc.so)").status()));
}

// Any part may be missing and any byte hold anything: an answer or an error, never a crash.
TEST(ElfFile, Damaged) {
  const std::string good = ReadFile(kSelf);
  const size_t headers = 2048;
  ASSERT_GT(good.size(), headers);
  for (size_t n = 0; n < headers; ++n) {
    const auto cut = ElfFile::In(std::string_view(good).substr(0, n));
    if (cut.ok()) {
      EXPECT_THAT(cut->Needed(), IsEmpty()) << n;
    }
  }
  std::string bad = good;
  for (size_t n = 0; n < headers; ++n) {
    for (const char value : {'\0', '\x7f', '\xff'}) {
      bad[n] = value;
      const auto file = ElfFile::In(bad);
      if (!file.ok()) continue;
      (void)file->Needed();
      (void)file->Note("GNU", NT_GNU_BUILD_ID);
    }
    bad[n] = good[n];
  }
}

}  // namespace
}  // namespace tl
