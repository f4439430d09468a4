// The store interface: verified bytes under a key, nothing else. It knows no IR and no GPU.
//
// Conventions
//   * Failure is a miss. Find has no error: an unreadable, locked or damaged store answers "not
//     here", counts it, and tells the warning callback once. Put reports its failure, and a caller
//     may ignore it: what was compiled is still good.
//   * What Find returns was verified: the key document is equal byte for byte and the checksum over
//     the whole entry holds. A damaged entry is quarantined, never returned.
//   * Every method may be called from any thread. No method calls back into the caller except the
//     warning callback, and no lock is held while that runs.
//   * A store that was open across fork() is dead in the child: every Find misses, every Put fails
//     with FAILED_PRECONDITION.
//   * Sizes are in bytes.
#ifndef TILEJIT_CACHE_STORE_H_
#define TILEJIT_CACHE_STORE_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "base/status.h"
#include "cache/key.h"

namespace tl {

// One build of one kernel.
struct Artifact {
  std::string binary;    // cubin, object code, ...; whatever the backend loads
  std::string metadata;  // what is needed to launch it; written and read by the service only
  std::string report;    // what the compiler says about it
  std::string log;       // output of the vendor's compiler
  std::string compiler;  // who built it, for people: "NVRTC 13.0.48"

  friend bool operator==(const Artifact&, const Artifact&) = default;
};

enum class MatchMode {
  kSemantic,  // any build with this semantic key: the own compiler's first, then the newest
  kBuild,     // the own compiler's build only
};

struct FindOptions {
  MatchMode match = MatchMode::kSemantic;
  // Builds to pass over, because the driver refused them: Hit::build of earlier answers. Asking
  // again with one more each time walks through all candidates.
  std::vector<KeyHash> exclude;
};

struct Hit {
  Artifact artifact;
  KeyHash build;           // names this build in FindOptions::exclude and Quarantine
  bool own_build = false;  // made by the compiler that the key names
};

// Counters of this object since it was opened; entries and bytes are those of the store now,
// whoever wrote them.
struct StoreStats {
  int64_t hits = 0;
  int64_t foreign_hits = 0;  // hits that another compiler had built; also counted in hits
  int64_t misses = 0;
  int64_t puts = 0;
  int64_t evictions = 0;
  int64_t quarantined = 0;  // damaged or rejected entries, and database files moved aside
  int64_t errors = 0;       // operations that failed for another reason (busy, full, unreadable)
  int64_t entries = 0;
  int64_t bytes = 0;  // binary, texts and key documents; without the database's own overhead
};

struct EntryInfo {
  KeyHash semantic;
  KeyHash build;
  std::string compiler;
  int64_t bytes = 0;
  int64_t created = 0;  // seconds since 1970, by the clock of the machine that stored it
  // As the row has them: listing reads no binaries and so verifies nothing.
  std::string semantic_document;
  std::string metadata;
};

struct VerifyReport {
  int64_t checked = 0;             // entries and tuned configurations
  int64_t damaged = 0;             // quarantined by this call where the store can be written
  std::vector<std::string> notes;  // what was found, one line each

  bool sound() const { return damaged == 0 && notes.empty(); }
};

// Answer to a request for the right to compile one key.
struct LeaseAnswer {
  bool acquired = false;
  std::string holder;        // who has it when not acquired
  absl::Duration remaining;  // after this time it can be taken over
};

// A tuned configuration. The scope names what it can be carried over to (the program and its
// dtypes), the key adds shape bucket and GPU identity.
struct Record {
  std::string scope_document;
  std::string key_document;
  std::string value;

  friend bool operator==(const Record&, const Record&) = default;
};

// Gets one line for a person. Called from any thread, at most once per kind of trouble.
using WarningCallback = std::function<void(std::string_view message)>;

class ArtifactStore {
 public:
  ArtifactStore() = default;
  ArtifactStore(const ArtifactStore&) = delete;
  ArtifactStore& operator=(const ArtifactStore&) = delete;
  virtual ~ArtifactStore() = default;

  // The best entry for the key, or nothing. Writes nothing (unless it has to quarantine): recency
  // is kept in memory until Flush, the next Put, or the end.
  virtual std::optional<Hit> Find(const ArtifactKey& key, const FindOptions& options) = 0;

  // Stores a build, in place of an earlier one with the same build key. Durable against a killed
  // process when it returns. RESOURCE_EXHAUSTED: disk full, or larger than the cap;
  // UNAVAILABLE: busy or I/O error; PERMISSION_DENIED: read-only.
  virtual Status Put(const ArtifactKey& key, const Artifact& artifact) = 0;

  // Takes a build out of service, for instance because the driver calls it malformed. Best effort
  // on disk, certain for this object.
  virtual void Quarantine(const KeyHash& build, std::string_view reason) = 0;

  virtual StoreStats Stats() = 0;

  // Whether what is put outlives the process, unless the disk refuses it (StoreStats::errors).
  virtual bool persistent() const = 0;

  // Entries, oldest first.
  virtual StatusOr<std::vector<EntryInfo>> ListEntries() = 0;

  // Calls `visit` for every entry that verifies, oldest first, until it returns false.
  virtual Status Visit(
      absl::FunctionRef<bool(const ArtifactKey& key, const Artifact& artifact)> visit) = 0;

  // Reads and checks everything.
  virtual StatusOr<VerifyReport> Verify() = 0;

  // Evicts the least recently used entries until at most max_bytes remain, and gives the space back
  // to the file system.
  virtual Status Trim(int64_t max_bytes) = 0;

  // Writes pending recency.
  virtual Status Flush() = 0;

  // The right to compile `key`, so that of several processes one does. `owner` names the caller
  // uniquely on all machines that share the store; asking again renews. A lease ends by release,
  // after ttl (at most one hour), or never lasts because the store cannot keep it: the caller must
  // treat it as a way to save work, not as mutual exclusion.
  virtual StatusOr<LeaseAnswer> TryAcquireLease(const KeyHash& key, std::string_view owner,
                                                absl::Duration ttl) = 0;
  virtual Status ReleaseLease(const KeyHash& key, std::string_view owner) = 0;

  // Tuned configurations. Same rules as artifacts: verified, document compared, newest wins.
  virtual std::optional<Record> FindRecord(std::string_view key_document) = 0;
  virtual std::vector<Record> FindRecords(std::string_view scope_document) = 0;
  virtual Status PutRecord(const Record& record) = 0;
  // Every record that verifies, oldest first.
  virtual StatusOr<std::vector<Record>> ListRecords() = 0;
};

// Leases longer than this are cut, and one that claims to end later was written under another
// clock.
inline constexpr absl::Duration kMaxLease = absl::Hours(1);

}  // namespace tl

#endif  // TILEJIT_CACHE_STORE_H_
