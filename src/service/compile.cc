// The way of a compile request: memory, store, compiler.
#include <algorithm>
#include <chrono>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ir/bind.h"
#include "ir/syntax.h"
#include "passes/repack_rows.h"
#include "service/context.h"
#include "service/families.h"
#include "service/generate.h"
#include "service/key.h"
#include "service/largest_fit.h"
#include "service/plan.h"

namespace tl {
namespace {

StatusOr<std::string_view> SourceOf(const CompileRequest& request) {
  if (request.source.empty() == request.family.empty()) {
    return absl::InvalidArgumentError("exactly one of source and family must be given");
  }
  if (request.family.empty()) return request.source;
  const FamilySource* family = FindFamily(request.family);
  if (family) return family->text;
  std::vector<std::string_view> names;
  for (const FamilySource& f : BuiltinFamilies()) names.push_back(f.name);
  return absl::NotFoundError(absl::StrCat("there is no family '", request.family, "'; there are ",
                                          absl::StrJoin(names, ", ")));
}

BindOptions OptionsFor(const CompileRequest& request, const Target& target) {
  BindOptions options;
  options.target_class = target.tune_class();
  for (const auto& [name, value] : request.params)
    options.values.emplace_back(std::string(name), std::string(value));
  return options;
}

bool GivesAny(const CompileRequest& request, const std::vector<std::string_view>& names) {
  return absl::c_any_of(
      request.params, [&](const auto& param) { return absl::c_linear_search(names, param.first); });
}

// Every argument is passed in a slot of eight bytes.
Status CheckParameterSpace(const Module& m, const Target& target) {
  const size_t bytes = 8 * (m.operands.size() + m.workspaces.size() + m.dims.size() +
                            m.strides.size() + m.scalars.size());
  if (target.max_param_bytes == 0 || static_cast<int64_t>(bytes) <= target.max_param_bytes)
    return absl::OkStatus();
  return LimitError({}, absl::StrCat("'", m.name, "' takes ", bytes, " bytes of arguments; ",
                                     target.name, " allows ", target.max_param_bytes,
                                     "; fix some dims or strides at compile time"));
}

}  // namespace

StatusOr<Context::Destination> Context::ResolveTarget(std::string_view name) const {
  std::vector<std::string> known;
  for (const std::unique_ptr<Backend>& backend : backends_) {
    StatusOr<Target> target = backend->FindTarget(name);
    if (target.ok()) return Destination{backend.get(), *std::move(target), -1};
    if (!absl::IsNotFound(target.status())) return target.status();
    for (std::string& n : backend->TargetNames()) known.push_back(std::move(n));
  }
  return absl::NotFoundError(absl::StrCat("there is no target or GPU '", name, "'; there are ",
                                          absl::StrJoin(known, ", ")));
}

StatusOr<Context::Destination> Context::Resolve(const CompileRequest& request) const {
  if (!request.target.empty()) {
    TL_ASSIGN_OR_RETURN(Destination destination, ResolveTarget(request.target));
    // "H200" is told from "GH200" by its records, while "sm_90a" means all of them.
    if (request.target != destination.target.name && destination.target.backend != "cpu")
      destination.device_name = request.target;
    return destination;
  }
  TL_ASSIGN_OR_RETURN(const Device* device, FindDevice(request.device));
  return Destination{device->backend, device->info.target, device->info.ordinal, device, {}};
}

StatusOr<std::shared_ptr<Kernel>> Context::Compile(const CompileRequest& request) {
  TL_RETURN_IF_ERROR(CheckProcess());
  const std::string key = RequestKey(request);
  {
    absl::ReaderMutexLock lock(&mu_);
    if (auto it = kernels_.find(key); it != kernels_.end()) {
      memory_hits_.fetch_add(1, std::memory_order_relaxed);
      return it->second;
    }
  }
  return CompileCold(request, key);
}

StatusOr<syntax::Program> Context::Parse(const CompileRequest& request) const {
  TL_ASSIGN_OR_RETURN(std::string_view text, SourceOf(request));
  return syntax::Parse(text);
}

StatusOr<Context::Prepared> Context::Prepare(const CompileRequest& request, Records records) const {
  Prepared prepared;
  TL_ASSIGN_OR_RETURN(prepared.destination, Resolve(request));
  const Target& target = prepared.destination.target;
  TL_ASSIGN_OR_RETURN(const syntax::Program program, Parse(request));
  BindOptions options = OptionsFor(request, target);
  StatusOr<Module> bound = Bind(program, options);
  if (!bound.ok()) return WithLargestFit(bound.status(), program, request, target);
  Module module = *std::move(bound);
  const std::vector<std::string_view> tuned = TuneNames(program, target.tune_class());
  if (GivesAny(request, tuned)) {
    prepared.choice.from = Choice::From::kCaller;
  } else if (records == Records::kUse && !tuned.empty()) {
    const auto found = FindRecord(program, module, prepared.destination, request);
    if (found) {
      for (const auto& value : found->tuned.configuration) options.values.push_back(value);
      StatusOr<Module> configured = Bind(program, options);
      // Dims that are only near may break a condition.
      if (configured.ok()) {
        module = *std::move(configured);
        prepared.choice = {found->exact ? Choice::From::kRecord : Choice::From::kNearest,
                           std::make_shared<const TunedRecord>(std::move(found->tuned))};
      }
    }
  }
  RepackRows(module, target);
  prepared.module = std::make_shared<const Module>(std::move(module));
  TL_RETURN_IF_ERROR(CheckParameterSpace(*prepared.module, target));
  return prepared;
}

std::optional<FoundRecord> Context::FindRecord(const syntax::Program& program, const Module& bound,
                                               const Destination& destination,
                                               const CompileRequest& request) const {
  const std::vector<Record> records = store_->FindRecords(
      RecordScope(program, bound, *destination.backend, destination.target, request));
  if (records.empty()) return std::nullopt;
  RecordQuery query{DimsOf(program, bound), {}, destination.device_name};
  if (destination.device) query.device_identity = DeviceIdentity(destination.device->info);
  return ChooseRecord(records, query);
}

Status Context::PutRecord(const Record& record) {
  if (options_.cache_mode == CacheMode::kReadOnly)
    return absl::PermissionDeniedError("the cache is opened for reading only");
  return store_->PutRecord(record);
}

StatusOr<std::shared_ptr<Program>> Context::BuildPrepared(const CompileRequest& request,
                                                          Prepared& prepared, bool keep) {
  StatusOr<std::shared_ptr<Program>> program =
      FindOrBuild(prepared.module, prepared.destination, request, keep);
  // A record never makes a request fail that goes without it: in a sealed context its kernel may
  // not be there, and dims that are only near may need more than the target has.
  if (program.ok()) return program;
  if (!prepared.choice.record) {
    TL_ASSIGN_OR_RETURN(const syntax::Program text, Parse(request));
    return WithLargestFit(program.status(), text, request, prepared.destination.target);
  }
  StatusOr<Prepared> untuned = Prepare(request, Records::kIgnore);
  if (!untuned.ok()) return program;
  StatusOr<std::shared_ptr<Program>> other =
      FindOrBuild(untuned->module, untuned->destination, request, keep);
  if (!other.ok()) return program;
  prepared = *std::move(untuned);
  return other;
}

StatusOr<std::shared_ptr<Kernel>> Context::CompileCold(const CompileRequest& request,
                                                       const std::string& key) {
  TL_ASSIGN_OR_RETURN(Prepared prepared, Prepare(request));
  TL_ASSIGN_OR_RETURN(std::shared_ptr<Program> program,
                      BuildPrepared(request, prepared, /*keep=*/true));
  TL_ASSIGN_OR_RETURN(std::shared_ptr<Kernel> kernel,
                      Kernel::Create(prepared.module, std::move(program), prepared.choice));
  absl::MutexLock lock(&mu_);
  return kernels_.try_emplace(key, std::move(kernel)).first->second;
}

StatusOr<Origin> Context::WarmUp(const CompileRequest& request) {
  TL_ASSIGN_OR_RETURN(Prepared prepared, Prepare(request));
  TL_ASSIGN_OR_RETURN(const std::shared_ptr<Program> program,
                      BuildPrepared(request, prepared, /*keep=*/false));
  return program->origin();
}

StatusOr<std::shared_ptr<Kernel>> Context::Adopt(std::string_view printed, int device,
                                                 int64_t shared_budget, Artifact artifact) {
  TL_ASSIGN_OR_RETURN(const Device* found, FindDevice(device));
  TL_ASSIGN_OR_RETURN(const syntax::Program text, syntax::Parse(printed, syntax::kPrintedLimits));
  TL_ASSIGN_OR_RETURN(Module bound, Bind(text, {}));
  const auto module = std::make_shared<const Module>(std::move(bound));
  TL_ASSIGN_OR_RETURN(std::vector<Entry> entries,
                      ReadMetadata(artifact.metadata, module->launches.size()));
  auto program =
      std::make_shared<Program>(found->backend, found->info.target, module, shared_budget,
                                std::move(entries), std::move(artifact), Origin::kCache);
  TL_RETURN_IF_ERROR(program->Load(found->info.ordinal).status());
  return Kernel::Create(module, std::move(program));
}

StatusOr<Target> Context::FindTarget(std::string_view name) const {
  TL_ASSIGN_OR_RETURN(Destination destination, ResolveTarget(name));
  return std::move(destination.target);
}

std::shared_ptr<Program> Context::FindProgram(const std::string& document) const {
  absl::ReaderMutexLock lock(&mu_);
  auto it = programs_.find(document);
  return it == programs_.end() ? nullptr : it->second;
}

StatusOr<std::shared_ptr<Program>> Context::FindOrBuild(const std::shared_ptr<const Module>& module,
                                                        const Destination& destination,
                                                        const CompileRequest& request, bool keep) {
  ArtifactKey key;
  key.semantic_document =
      SemanticDocument(*module, *destination.backend, destination.target, request.shared_budget);
  if (std::shared_ptr<Program> program = FindProgram(key.semantic_document)) {
    memory_hits_.fetch_add(1, std::memory_order_relaxed);
    return program;
  }
  auto compute = [&]() -> StatusOr<std::shared_ptr<Program>> {
    // The flight before this one may just have landed.
    if (std::shared_ptr<Program> program = FindProgram(key.semantic_document)) {
      memory_hits_.fetch_add(1, std::memory_order_relaxed);
      return program;
    }
    if (StatusOr<std::string> compiler = destination.backend->CompilerIdentity(destination.target);
        compiler.ok()) {
      key.compiler_identity = *std::move(compiler);
    }
    StatusOr<std::shared_ptr<Program>> program = FindOrCompile(module, destination, key, request);
    if (!program.ok() || !keep) return program;
    absl::MutexLock lock(&mu_);
    programs_.try_emplace(key.semantic_document, *program);
    return program;
  };
  auto result = flights_.Do(key.semantic_document, compute);
  if (result.waited) waits_.fetch_add(1, std::memory_order_relaxed);
  TL_RETURN_IF_ERROR(result.value.status());
  // The device of whoever compiled need not be this caller's.
  if (destination.ordinal >= 0)
    TL_RETURN_IF_ERROR((*result.value)->Load(destination.ordinal).status());
  return result.value;
}

// Of all processes that share the store, one compiles and the others take what it stored.
StatusOr<std::shared_ptr<Program>> Context::FindOrCompile(
    const std::shared_ptr<const Module>& module, const Destination& destination,
    const ArtifactKey& key, const CompileRequest& request) {
  const int64_t budget = request.shared_budget;
  FindOptions options = MatchOptions();
  StatusOr<std::shared_ptr<Program>> program;
  const auto look = [&] {
    program = FindInStore(module, destination, key, budget, options);
    if (!program.ok()) return true;
    if (*program) hits_.fetch_add(1, std::memory_order_relaxed);
    return *program != nullptr;
  };
  if (look()) return program;
  misses_.fetch_add(1, std::memory_order_relaxed);
  if (sealed()) return SealedMiss(*module, destination.target, key, request);
  if (!process_flight_) return Build(module, destination, key, budget);
  const KeyHash flight = options_.own_builds_only ? BuildHash(key) : SemanticHash(key);
  const ProcessFlight::Turn turn = process_flight_->Enter(flight, look);
  if (turn.waited()) waits_.fetch_add(1, std::memory_order_relaxed);
  return turn.found() ? program : Build(module, destination, key, budget);
}

FindOptions Context::MatchOptions() const {
  FindOptions options;
  options.match = options_.own_builds_only ? MatchMode::kBuild : MatchMode::kSemantic;
  return options;
}

// What was missing, for which a plan that warms it is the error's log.
Status Context::SealedMiss(const Module& module, const Target& target, const ArtifactKey& key,
                           const CompileRequest& request) const {
  std::vector<std::string> params;
  for (const BoundParam& p : module.params) params.push_back(absl::StrCat(p.name, "=", p.value));
  std::string message = absl::StrCat(
      "this context is sealed and has no kernel '", module.name, "' for ", target.name,
      params.empty() ? "" : " with ", absl::StrJoin(params, " "), " (key ", SemanticHash(key).Hex(),
      ") in memory, in the cache at ", location_, " or in its ", options_.packs.size(),
      " packs; compile it before sealing, or warm a pack with the plan in "
      "this error's log (tl warm)");
  for (const std::string& line : packs_left_out_) absl::StrAppend(&message, "; ", line);
  return MakeError(absl::StatusCode::kUnavailable, message,
                   {.reason = Reason::kNotReady, .log = PlanFor(request, target.name)});
}

// Null is a miss. A build that the driver refuses is passed over for the next one, also when
// asked again with the same options.
StatusOr<std::shared_ptr<Program>> Context::FindInStore(const std::shared_ptr<const Module>& module,
                                                        const Destination& destination,
                                                        const ArtifactKey& key,
                                                        int64_t shared_budget,
                                                        FindOptions& options) {
  while (std::optional<Hit> hit = store_->Find(key, options)) {
    StatusOr<std::vector<Entry>> entries =
        ReadMetadata(hit->artifact.metadata, module->launches.size());
    if (!entries.ok()) {
      store_->Quarantine(hit->build, entries.status().message());
      options.exclude.push_back(hit->build);
      continue;
    }
    auto program =
        std::make_shared<Program>(destination.backend, destination.target, module, shared_budget,
                                  *std::move(entries), std::move(hit->artifact), Origin::kCache);
    if (destination.ordinal >= 0) {
      const Status loaded = program->Load(destination.ordinal).status();
      if (DetailOf(loaded).reason == Reason::kBinaryRejected) {
        Log(LogLevel::kWarning, absl::StrCat("a cached build by ", program->artifact().compiler,
                                             " was refused: ", loaded.message()));
        options.exclude.push_back(hit->build);
        continue;
      }
      TL_RETURN_IF_ERROR(loaded);
    }
    return program;
  }
  return std::shared_ptr<Program>();
}

StatusOr<std::shared_ptr<Program>> Context::Build(const std::shared_ptr<const Module>& module,
                                                  const Destination& destination,
                                                  const ArtifactKey& key, int64_t shared_budget) {
  const auto start = std::chrono::steady_clock::now();
  TL_ASSIGN_OR_RETURN(Generated generated, GenerateFor(*destination.backend, *module,
                                                       destination.target, shared_budget));
  TL_ASSIGN_OR_RETURN(Built built, destination.backend->Build(generated, destination.target));
  const auto elapsed = std::chrono::steady_clock::now() - start;
  compiles_.fetch_add(1, std::memory_order_relaxed);
  compile_ns_.fetch_add(static_cast<uint64_t>(std::chrono::nanoseconds(elapsed).count()),
                        std::memory_order_relaxed);

  Artifact artifact;
  artifact.binary = std::move(built.binary);
  artifact.metadata = WriteMetadata(*module, generated.entries);
  artifact.log = std::move(built.log);
  artifact.compiler = built.compiler;
  artifact.report = absl::StrJoin(generated.notes, "\n");
  auto program =
      std::make_shared<Program>(destination.backend, destination.target, module, shared_budget,
                                generated.entries, artifact, Origin::kCompiled);
  if (destination.ordinal >= 0) TL_RETURN_IF_ERROR(program->Load(destination.ordinal).status());
  // What cannot be stored still runs; the store has told its warning.
  ArtifactKey stored = key;
  stored.compiler_identity = built.compiler;
  if (options_.cache_mode != CacheMode::kReadOnly) store_->Put(stored, artifact).IgnoreError();
  return program;
}

}  // namespace tl
