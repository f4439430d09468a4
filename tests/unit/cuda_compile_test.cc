// NVRTC: found in many places or clearly missing; compiles for every architecture where it is
// there.
#include <elf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "backends/cuda/find_nvrtc.h"
#include "backends/cuda/ptxas_info.h"
#include "base/build_id.h"
#include "tests/unit/cuda_programs.h"
#include "tests/unit/nvrtc_testing.h"

namespace tl {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// The smallest ELF file with a build-id.
std::string FakeLibrary(std::string_view id) {
  Elf64_Ehdr head = {};
  std::memcpy(head.e_ident, ELFMAG, SELFMAG);
  head.e_ident[EI_CLASS] = ELFCLASS64;
  head.e_ident[EI_DATA] = ELFDATA2LSB;
  head.e_type = ET_DYN;
  head.e_phoff = sizeof(head);
  head.e_phentsize = sizeof(Elf64_Phdr);
  head.e_phnum = 1;
  Elf64_Nhdr note = {
      .n_namesz = 4, .n_descsz = static_cast<Elf64_Word>(id.size()), .n_type = NT_GNU_BUILD_ID};
  Elf64_Phdr segment = {};
  segment.p_type = PT_NOTE;
  segment.p_offset = sizeof(head) + sizeof(segment);
  segment.p_filesz = sizeof(note) + 4 + id.size();
  std::string file(reinterpret_cast<const char*>(&head), sizeof(head));
  file.append(reinterpret_cast<const char*>(&segment), sizeof(segment));
  file.append(reinterpret_cast<const char*>(&note), sizeof(note));
  file.append("GNU\0", 4);
  return file.append(id);
}

class FindNvrtcTest : public ::testing::Test {
 protected:
  FindNvrtcTest() {
    std::string name = (fs::temp_directory_path() / "tl-nvrtc-XXXXXX").string();
    root_ = mkdtemp(name.data());
    paths_.system_roots = {(root_ / "system").string()};
    paths_.loader_path = false;
    paths_.cuda_roots = {(root_ / "toolkit").string()};
    paths_.wheel_roots = {(root_ / "site").string()};
    paths_.library_dir = (root_ / "own").string();
  }
  ~FindNvrtcTest() override { fs::remove_all(root_); }

  std::string Write(const fs::path& path, const std::string& content) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path, std::ios::binary) << content;
    return (root_ / path).string();
  }

  fs::path root_;
  SearchPaths paths_;
};

TEST_F(FindNvrtcTest, EveryLayoutInOrder) {
  const std::string system =
      Write("system/cuda-12.4/lib64/libnvrtc.so.12", FakeLibrary("12345678"));
  const std::string own = Write("own/libnvrtc.so.13", FakeLibrary("12345678"));
  const std::string old_wheel =
      Write("site/nvidia/cuda_nvrtc/lib/libnvrtc.so.11.2", FakeLibrary("12345678"));
  const std::string wheel = Write("site/nvidia/cu13/lib/libnvrtc.so.13", FakeLibrary("12345678"));
  const std::string toolkit = Write("toolkit/lib64/libnvrtc.so.12", FakeLibrary("12345678"));
  EXPECT_THAT(FindNvrtc(paths_).found, ElementsAre(toolkit, wheel, old_wheel, own, system));
}

TEST_F(FindNvrtcTest, NewestToolkitAndVersionFirst) {
  Write("system/cuda-12.9/lib64/libnvrtc.so.12", FakeLibrary("12345678"));
  const std::string newest =
      Write("system/cuda-12.10/lib64/libnvrtc.so.12", FakeLibrary("12345678"));
  EXPECT_EQ(FindNvrtc(paths_).found.front(), newest);
  const std::string newer = Write("own/libnvrtc.so.13", FakeLibrary("12345678"));
  Write("own/libnvrtc.so.12", FakeLibrary("12345678"));
  EXPECT_EQ(FindNvrtc(paths_).found.front(), newer);
}

TEST_F(FindNvrtcTest, NothingThatIsNoLibrary) {
  Write("toolkit/lib64/libnvrtc.so.13", "a text");
  Write("toolkit/lib/libnvrtc.so.13/inside", "a directory");
  Write("own/libnvrtc.so.13", "");
  EXPECT_THAT(FindNvrtc(paths_).found, IsEmpty());
}

TEST_F(FindNvrtcTest, MissingNamesEveryPlace) {
  const auto backend = MakeCudaBackend(paths_);
  const Target target = *FindCudaTarget("sm_80");
  for (const Status& s :
       {backend->CompilerIdentity(target).status(), backend->Build({}, target).status()}) {
    EXPECT_EQ(s.code(), absl::StatusCode::kNotFound);
    EXPECT_EQ(DetailOf(s).reason, Reason::kMissingLibrary);
    EXPECT_EQ(DetailOf(s).domain, Domain::kNvrtc);
    for (const char* place : {"/toolkit/lib64", "/site/nvidia/cu13/lib",
                              "/site/nvidia/cuda_nvrtc/lib", "/own", "/system/cuda/lib64"}) {
      EXPECT_THAT(std::string(s.message()), HasSubstr(root_.string() + place));
    }
    for (const std::string& name : NvrtcSonames()) {
      EXPECT_THAT(std::string(s.message()), HasSubstr(name));
    }
    EXPECT_THAT(std::string(s.message()), HasSubstr("TL_CUDA_PATH"));
  }
}

TEST_F(FindNvrtcTest, BrokenLibraryGivesTheLoadersReason) {
  Write("toolkit/lib64/libnvrtc.so.13", FakeLibrary("12345678"));
  const auto backend = MakeCudaBackend(paths_);
  const Status s = backend->Build({}, *backend->FindTarget("sm_80")).status();
  EXPECT_EQ(DetailOf(s).reason, Reason::kMissingLibrary);
  EXPECT_THAT(std::string(s.message()), HasSubstr("the loader says"));
}

TEST_F(FindNvrtcTest, IdentityWithoutLoading) {
  const std::string id("\x01\x02\xab\xcd", 4);
  // Major and minor stand in the name of the neighbour …
  Write("toolkit/lib64/libnvrtc.so.13", FakeLibrary(id));
  Write("toolkit/lib64/libnvrtc-builtins.so.13.0", FakeLibrary(id));
  EXPECT_EQ(*MakeCudaBackend(paths_)->CompilerIdentity({}), "nvrtc 13.0 build-id 0102abcd");
  // … or of the file itself behind a link.
  Write("site/nvidia/cuda_nvrtc/lib/libnvrtc.so.12.4.127", FakeLibrary(id));
  fs::create_symlink("libnvrtc.so.12.4.127", root_ / "site/nvidia/cuda_nvrtc/lib/libnvrtc.so.12");
  paths_.cuda_roots.clear();
  EXPECT_EQ(*MakeCudaBackend(paths_)->CompilerIdentity({}), "nvrtc 12.4.127 build-id 0102abcd");
}

TEST(BuildId, DamagedFiles) {
  const std::string good = FakeLibrary("12345678");
  std::string name = (fs::temp_directory_path() / "tl-elf-XXXXXX").string();
  const int fd = mkstemp(name.data());
  ASSERT_GE(fd, 0);
  close(fd);
  for (size_t n = 0; n < good.size(); ++n) {
    std::ofstream(name, std::ios::binary | std::ios::trunc) << good.substr(0, n);
    EXPECT_FALSE(ReadBuildId(name).ok()) << n;
  }
  // Any byte may hold anything: an answer or an error, never a crash.
  for (size_t n = 0; n < good.size(); ++n) {
    std::string bad = good;
    bad[n] = '\xff';
    std::ofstream(name, std::ios::binary | std::ios::trunc) << bad;
    (void)ReadBuildId(name).ok();
  }
  fs::remove(name);
}

TEST(PtxasInfo, RegistersSpillsAndPerformanceMessages) {
  const PtxasInfo info = ParsePtxasInfo(
      "ptxas info    : 1 bytes gmem\n"
      "ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async instructions are "
      "serialized\n"
      "ptxas info    : Compiling entry function 'tl_kernel_0' for 'sm_90a'\n"
      "ptxas info    : Function properties for tl_kernel_0\n"
      "ptxas         .     16 bytes stack frame, 12 bytes spill stores, 8 bytes spill loads\n"
      "ptxas info    : Used 255 registers, used 1 barriers\n"
      "ptxas info    : Compiling entry function 'tl_kernel_1' for 'sm_90a'\n"
      "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
      "ptxas info    : Used 20 registers, used 1 barriers, 440 bytes cmem[0]\n");
  ASSERT_EQ(info.entries.size(), 2u);
  EXPECT_EQ(info.entries[0].symbol, "tl_kernel_0");
  EXPECT_EQ(info.entries[0].registers, 255);
  EXPECT_EQ(info.entries[0].stack_bytes, 16);
  EXPECT_EQ(info.entries[0].spill_store_bytes, 12);
  EXPECT_EQ(info.entries[0].spill_load_bytes, 8);
  EXPECT_EQ(info.entries[1].registers, 20);
  EXPECT_EQ(info.entries[1].spill_load_bytes, 0);
  EXPECT_EQ(PtxasNotes(info).size(), 2u);
  EXPECT_THAT(ParsePtxasInfo("").entries, IsEmpty());
}

TEST(PtxasInfo, TooFewRegisters) {
  const auto found = FindRegisterShortage(
      "ptxas info    : 1 bytes gmem\n"
      "ptxas fatal   : (C7602) Insufficient registers (128) to compile instruction at line 507 in "
      "function tl_kernel_0. Try to compile with register target of 154 or higher.\n"
      "ptxas fatal   : Ptx assembly aborted due to errors");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->available, 128);
  EXPECT_EQ(found->needed, 154);
  EXPECT_FALSE(FindRegisterShortage("ptxas info    : (C7510) Potential Performance Loss"));
}

// ---- with a compiler ----

class NvrtcTest : public testing::WithNvrtc<> {
 protected:
  StatusOr<Built> Build(std::string_view text, const testing::Values& values,
                        const Target& target) {
    TL_ASSIGN_OR_RETURN(const auto lowered, testing::LowerText(text, values, target));
    return backend_->Build(lowered.generated, target);
  }
};

TEST_F(NvrtcTest, EveryProgramCompiles) {
  std::vector<testing::CudaCase> all = testing::SmallPrograms();
  for (testing::CudaCase& c : testing::FamilyPrograms()) all.push_back(std::move(c));
  // Each on one architecture, in turn; and one that uses every conversion on all of them.
  const char* const archs[] = {"sm_75", "sm_80", "sm_89", "sm_90a"};
  for (size_t i = 0; i < all.size(); ++i) {
    const Target target = *FindCudaTarget(archs[i % 4]);
    const StatusOr<Built> built = Build(all[i].text, all[i].values, target);
    EXPECT_TRUE(built.ok()) << all[i].name << " " << target.name << built.status()
                            << DetailOf(built.status()).log;
  }
}

TEST_F(NvrtcTest, EveryArchitectureCompiles) {
  for (const std::string& name : backend_->TargetNames()) {
    if (name.substr(0, 3) != "sm_") continue;
    for (const testing::CudaCase& c : testing::SmallPrograms()) {
      if (c.name != "conversions" && c.name != "atomics") continue;
      const StatusOr<Built> built = Build(c.text, c.values, *FindCudaTarget(name));
      if (DetailOf(built.status()).reason == Reason::kUnsupported) {
        // Older compilers: the message lists what they can do.
        EXPECT_THAT(std::string(built.status().message()), HasSubstr("it compiles for sm_"));
        continue;
      }
      ASSERT_TRUE(built.ok()) << name << " " << built.status() << DetailOf(built.status()).log;
      EXPECT_EQ(built->binary.substr(0, 4),
                "\x7f"
                "ELF");
      const PtxasInfo info = ParsePtxasInfo(built->log);
      ASSERT_EQ(info.entries.size(), 1u) << built->log;
      EXPECT_EQ(built->log.find("warning"), std::string::npos) << built->log;
      EXPECT_GT(info.entries[0].registers, 0);
      EXPECT_EQ(info.entries[0].spill_store_bytes, 0) << name;
      EXPECT_EQ(built->compiler, *backend_->CompilerIdentity({}));
    }
  }
}

TEST_F(NvrtcTest, PtxOnRequest) {
  const Target target = *FindCudaTarget("sm_80");
  const testing::CudaCase c = testing::FamilyPrograms()[0];
  const auto lowered = testing::LowerText(c.text, c.values, target);
  ASSERT_TRUE(lowered.ok());
  const auto ptx = backend_->Disassemble(lowered->generated, "", target, "ptx");
  ASSERT_TRUE(ptx.ok()) << ptx.status();
  EXPECT_THAT(*ptx, HasSubstr(".target sm_80"));
  EXPECT_THAT(*ptx, HasSubstr(".entry tl_kernel_0"));
  EXPECT_FALSE(backend_->Disassemble(lowered->generated, "", target, "poetry").ok());
}

TEST_F(NvrtcTest, MachineCodeWhereThereIsADisassembler) {
  const Target target = *FindCudaTarget("sm_80");
  const testing::CudaCase c = testing::FamilyPrograms()[0];
  const auto lowered = testing::LowerText(c.text, c.values, target);
  ASSERT_TRUE(lowered.ok());
  const auto built = backend_->Build(lowered->generated, target);
  ASSERT_TRUE(built.ok()) << built.status();
  const auto sass = backend_->Disassemble(lowered->generated, built->binary, target, "sass");
  if (DetailOf(sass.status()).reason == Reason::kMissingLibrary) {
    EXPECT_THAT(std::string(sass.status().message()), HasSubstr("nvidia-cuda-nvdisasm"));
    GTEST_SKIP() << "SKIP, no nvdisasm";
  }
  ASSERT_TRUE(sass.ok()) << sass.status() << DetailOf(sass.status()).log;
  EXPECT_THAT(*sass, HasSubstr("tl_kernel_0"));
  EXPECT_THAT(*sass, HasSubstr("EXIT"));
  // What is no binary is an error with the program's own words.
  EXPECT_FALSE(backend_->Disassemble(lowered->generated, "nonsense", target, "sass").ok());
}

TEST_F(NvrtcTest, CompileErrorCarriesTheLog) {
  Generated g;
  g.source = "extern \"C\" __global__ void k() { undeclared(); }";
  const Status s = backend_->Build(g, *FindCudaTarget("sm_80")).status();
  ASSERT_FALSE(s.ok());
  EXPECT_EQ(DetailOf(s).domain, Domain::kNvrtc);
  EXPECT_EQ(DetailOf(s).native_code, 6);
  EXPECT_THAT(DetailOf(s).log, HasSubstr("undeclared"));
}

// A row of c for every warpgroup has 256 sums a thread, and two blocks share the registers.
TEST_F(NvrtcTest, TooFewRegistersAreALimitOfTheProgram) {
  const Status s = Build(R"(tl 1.0
kernel k() {
  in A: tensor<bf16>[64, 64], B: tensor<bf16>[256, 64] out C: tensor<f32>[64, 256]
  launch m in 1 threads=128 blocks=4 {
    a_s = alloc_shared<bf16>[64, 64]
    b_s = alloc_shared<bf16>[256, 64]
    c = alloc_fragment<f32>[64, 256]
    copy A -> a_s
    copy B -> b_s
    gemm a_s, b_s -> c transpose_b clear
    copy c -> C
  }
})",
                         {}, *FindCudaTarget("sm_90a"))
                       .status();
  if (DetailOf(s).reason == Reason::kUnsupported) GTEST_SKIP() << "an older NVRTC";
  EXPECT_EQ(s.code(), absl::StatusCode::kResourceExhausted) << s;
  EXPECT_EQ(DetailOf(s).reason, Reason::kLimit);
  EXPECT_THAT(std::string(s.message()), HasSubstr("a thread has 128 registers, of which one"));
}

TEST_F(NvrtcTest, ManyThreadsAtOnce) {
  const testing::CudaCase c = testing::FamilyPrograms()[0];
  std::vector<std::thread> threads;
  std::vector<Status> results(4);
  for (size_t i = 0; i < results.size(); ++i) {
    threads.emplace_back(
        [&, i] { results[i] = Build(c.text, c.values, *FindCudaTarget("sm_80")).status(); });
  }
  for (std::thread& t : threads) t.join();
  for (const Status& s : results) EXPECT_TRUE(s.ok()) << s;
}

}  // namespace
}  // namespace tl
