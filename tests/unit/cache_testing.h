// What the cache's tests share.
#ifndef TILEJIT_TESTS_UNIT_CACHE_TESTING_H_
#define TILEJIT_TESTS_UNIT_CACHE_TESTING_H_

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "cache/schema.h"
#include "cache/sqlite_store.h"
#include "cache/store.h"

namespace tl::cache_testing {

// A private directory that goes with the object.
class TempDir {
 public:
  TempDir() {
    std::string pattern = ::testing::TempDir() + "/tl-cache-XXXXXX";
    path_ = mkdtemp(pattern.data());
  }
  ~TempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }
  std::string cache() const { return path_ + "/cache"; }
  std::string database() const { return cache() + "/" + kDatabaseName; }
  // Names in the cache directory that contain `part`.
  int Count(const std::string& part) const {
    int count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(cache())) {
      count += entry.path().filename().string().find(part) != std::string::npos ? 1 : 0;
    }
    return count;
  }
  // Database files moved aside, not counting their logs.
  int CountQuarantined() const {
    int count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(cache())) {
      const std::string name = entry.path().filename().string();
      count += name.find(".quarantined-") != std::string::npos && !name.ends_with("-wal") &&
               !name.ends_with("-shm");
    }
    return count;
  }

 private:
  std::string path_;
};

// Collects warnings; outlives the stores that use it.
class WarningLog {
 public:
  WarningCallback callback() {
    return [this](std::string_view message) {
      absl::MutexLock lock(&mu_);
      messages_.emplace_back(message);
    };
  }
  std::vector<std::string> messages() const {
    absl::MutexLock lock(&mu_);
    return messages_;
  }

 private:
  mutable absl::Mutex mu_;
  std::vector<std::string> messages_ ABSL_GUARDED_BY(mu_);
};

inline ArtifactKey KeyOf(const std::string& program,
                         const std::string& compiler = "nvrtc 13.0 a1") {
  return {"semantic:" + program, compiler};
}

// Different for each text, recognisably so in every field.
inline Artifact ArtifactOf(const std::string& text, size_t binary_bytes = 40) {
  std::string binary;
  while (binary.size() < binary_bytes) binary += text + '\0';
  binary.resize(binary_bytes);
  return {binary, "{\"m\":\"" + text + "\"}", "{\"r\":\"" + text + "\"}", "log of " + text,
          "compiler of " + text};
}

inline std::unique_ptr<SqliteStore> OpenStore(const TempDir& dir, SqliteStoreOptions options = {}) {
  auto store = SqliteStore::Open(dir.cache(), options);
  EXPECT_TRUE(store.ok()) << store.status();
  return store.ok() ? *std::move(store) : nullptr;
}

// A second, plain way into the file. Not while a store of this process has it open for writing
// something that matters: both are ordinary SQLite connections.
class RawDatabase {
 public:
  explicit RawDatabase(const std::string& path) {
    EXPECT_EQ(sqlite3_open(path.c_str(), &db_), SQLITE_OK);
    sqlite3_busy_timeout(db_, 5000);
  }
  ~RawDatabase() { sqlite3_close(db_); }
  void Execute(const std::string& sql) {
    char* message = nullptr;
    EXPECT_EQ(sqlite3_exec(db_, sql.c_str(), nullptr, nullptr, &message), SQLITE_OK)
        << sql << ": " << message;
    sqlite3_free(message);
  }
  // First column of the first row.
  std::string Value(const std::string& sql) {
    sqlite3_stmt* statement = nullptr;
    EXPECT_EQ(sqlite3_prepare_v2(db_, sql.c_str(), -1, &statement, nullptr), SQLITE_OK) << sql;
    std::string value;
    if (sqlite3_step(statement) == SQLITE_ROW) {
      const void* data = sqlite3_column_blob(statement, 0);
      const int size = sqlite3_column_bytes(statement, 0);
      if (data != nullptr) value.assign(static_cast<const char*>(data), size);
    }
    sqlite3_finalize(statement);
    return value;
  }
  void SetBlob(const std::string& sql, const std::string& bytes) {
    sqlite3_stmt* statement = nullptr;
    EXPECT_EQ(sqlite3_prepare_v2(db_, sql.c_str(), -1, &statement, nullptr), SQLITE_OK) << sql;
    sqlite3_bind_blob(statement, 1, bytes.data(), static_cast<int>(bytes.size()), SQLITE_STATIC);
    EXPECT_EQ(sqlite3_step(statement), SQLITE_DONE);
    sqlite3_finalize(statement);
  }

 private:
  sqlite3* db_ = nullptr;
};

inline std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline void WriteFile(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

}  // namespace tl::cache_testing

#endif  // TILEJIT_TESTS_UNIT_CACHE_TESTING_H_
