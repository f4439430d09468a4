// Any bytes in place of a pack, or of a cache's database: opening, reading and importing never
// crash, what is served is what was stored, and a cache works on. The first byte of an input says
// what the others are: the file itself, or changes to a sound one.
#include <sys/stat.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "cache/memory_store.h"
#include "cache/pack.h"
#include "cache/schema.h"
#include "cache/sqlite_store.h"

namespace {

const char* const kNames[] = {"a", "b"};
constexpr char kKey[] = "key";

tl::ArtifactKey KeyOf(const char* name) { return {std::string("semantic:") + name, "compiler"}; }
tl::Artifact ArtifactOf(const char* name) {
  return {std::string(300, *name), "{}", "{}", std::string("log of ") + name, "compiler"};
}
tl::Record TheRecord() { return {"scope", kKey, "value"}; }

[[noreturn]] void Finding(const char* what) {
  std::fprintf(stderr, "%s\n", what);
  __builtin_trap();
}

void CheckAnswers(tl::ArtifactStore& store) {
  for (const char* name : kNames) {
    const auto hit = store.Find(KeyOf(name), {});
    if (hit.has_value() && hit->artifact != ArtifactOf(name)) Finding("a wrong binary is served");
  }
  const auto record = store.FindRecord(kKey);
  if (record.has_value() && *record != TheRecord()) Finding("a wrong record is served");
}

void Fill(tl::ArtifactStore& store) {
  for (const char* name : kNames) {
    if (!store.Put(KeyOf(name), ArtifactOf(name)).ok()) Finding("a sound store takes nothing");
  }
  if (!store.PutRecord(TheRecord()).ok()) Finding("a sound store takes no record");
}

std::string Read(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

// The sound files, and the place for the others, in memory where the system has such a place.
struct Place {
  std::string directory, pack, database;

  Place() {
    std::string pattern =
        access("/dev/shm", W_OK) == 0 ? "/dev/shm/tl-fuzz-XXXXXX" : "/tmp/tl-fuzz-XXXXXX";
    directory = mkdtemp(pattern.data());
    std::atexit([] { std::filesystem::remove_all(Get().directory); });
    tl::MemoryStore memory(0);
    Fill(memory);
    const std::string path = directory + "/sound.pack";
    if (!tl::WritePack(memory, path, [](const tl::ArtifactKey&) { return true; }).ok())
      Finding("no pack can be written");
    pack = Read(path);
    auto store = tl::SqliteStore::Open(directory + "/sound", {});
    if (!store.ok()) Finding("no cache can be opened");
    Fill(**store);
    store->reset();
    database = Read(directory + "/sound/" + tl::kDatabaseName);
  }
  static Place& Get() {
    static Place& place = *new Place;
    return place;
  }
};

// Four bytes a change: where, as a number of 24 bits, and what. A place past the end cuts there.
std::string Changed(std::string bytes, const uint8_t* data, size_t size) {
  for (size_t i = 0; i + 4 <= size && !bytes.empty(); i += 4) {
    const size_t at = data[i] | data[i + 1] << 8 | data[i + 2] << 16;
    if (at < bytes.size()) {
      bytes[at] = static_cast<char>(data[i + 3]);
    } else {
      bytes.resize(at % bytes.size());
    }
  }
  return bytes;
}

std::string Write(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
  chmod(path.c_str(), 0600);
  return path;
}

void TryPack(const std::string& bytes) {
  const std::string path = Write(Place::Get().directory + "/any.pack", bytes);
  if (auto pack = tl::OpenPack(path, nullptr); pack.ok()) {
    CheckAnswers(**pack);
    if ((*pack)->Put(KeyOf("c"), ArtifactOf("c")).ok()) Finding("a pack is written");
    (void)(*pack)->ListEntries();
    (void)(*pack)->Verify();
  } else if (pack.status().message().empty()) {
    Finding("a pack is refused without a word");
  }
  tl::MemoryStore store(0);
  (void)tl::ImportPack(path, store);
  CheckAnswers(store);
}

void TryDatabase(const std::string& bytes) {
  const std::string directory = Place::Get().directory + "/any";
  std::filesystem::create_directory(directory);
  chmod(directory.c_str(), 0700);
  Write(directory + "/" + tl::kDatabaseName, bytes);
  if (auto store = tl::SqliteStore::Open(directory, {}); store.ok()) {
    CheckAnswers(**store);
    (void)(*store)->Put(KeyOf("a"), ArtifactOf("a"));
    CheckAnswers(**store);
    (void)(*store)->Verify();
    CheckAnswers(**store);
  }
  std::filesystem::remove_all(directory);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const Place& place = Place::Get();
  const std::string whole(reinterpret_cast<const char*>(data + 1), size - 1);
  switch (data[0] % 4) {
    case 0:
      TryPack(whole);
      break;
    case 1:
      TryPack(Changed(place.pack, data + 1, size - 1));
      break;
    case 2:
      TryDatabase(Changed(place.database, data + 1, size - 1));
      break;
    default:
      TryDatabase(whole);
  }
  return 0;
}
