// Object to memory, by the linker of LLVM's ORC library.

#include <memory>
#include <mutex>
#include <string>

#include "backends/cpu/module/bytes.h"
#include "backends/cpu/module/guard.h"
#include "backends/cpu/module/interface.h"
#include "llvm/ExecutionEngine/Orc/Core.h"
#include "llvm/ExecutionEngine/Orc/ExecutorProcessControl.h"
#include "llvm/ExecutionEngine/Orc/ObjectFileInterface.h"
#include "llvm/ExecutionEngine/Orc/ObjectLinkingLayer.h"
#include "llvm/Support/MemoryBuffer.h"

namespace orc = llvm::orc;

namespace tl_cpu {
namespace {

// Asks the caller's resolver, and nobody else: the symbols of the process stay out of reach.
class ResolverGenerator : public orc::DefinitionGenerator {
 public:
  ResolverGenerator(tl_cpu_resolver resolve, void* context)
      : resolve_(resolve), context_(context) {}
  llvm::Error tryToGenerate(orc::LookupState&, orc::LookupKind, orc::JITDylib& dylib,
                            orc::JITDylibLookupFlags,
                            const orc::SymbolLookupSet& symbols) override {
    orc::SymbolMap found;
    for (const auto& [name, flags] : symbols) {
      void* address = resolve_ ? resolve_(context_, (*name).str().c_str()) : nullptr;
      if (address == nullptr) continue;
      found[name] = {orc::ExecutorAddr::fromPtr(address), llvm::JITSymbolFlags::Exported};
    }
    if (found.empty()) return llvm::Error::success();
    return dylib.define(orc::absoluteSymbols(std::move(found)));
  }

 private:
  tl_cpu_resolver resolve_;
  void* context_;
};

}  // namespace
}  // namespace tl_cpu

// One session per object: nothing is shared between images, so nothing has to be locked.
struct tl_cpu_image {
  std::string errors;
  std::unique_ptr<orc::ExecutionSession> session;
  std::unique_ptr<orc::ObjectLinkingLayer> linker;
  orc::JITDylib* dylib = nullptr;

  ~tl_cpu_image() {
    if (session == nullptr) return;
    if (llvm::Error error = session->endSession()) llvm::consumeError(std::move(error));
  }
};

namespace tl_cpu {
namespace {

std::string Load(llvm::StringRef object, tl_cpu_resolver resolve, void* context,
                 tl_cpu_image* image) {
  auto control = orc::SelfExecutorProcessControl::Create();
  if (!control) return llvm::toString(control.takeError());
  image->session = std::make_unique<orc::ExecutionSession>(std::move(*control));
  image->session->setErrorReporter(
      [image](llvm::Error error) { image->errors += llvm::toString(std::move(error)) + "\n"; });
  image->linker = std::make_unique<orc::ObjectLinkingLayer>(*image->session);
  image->dylib = &image->session->createBareJITDylib("image");
  image->dylib->addGenerator(std::make_unique<ResolverGenerator>(resolve, context));
  // Linking happens at the first lookup, so every symbol of the object is looked up now: an object
  // that cannot be linked is reported here.
  auto buffer = llvm::MemoryBuffer::getMemBufferCopy(object, "object");
  auto interface = orc::getObjectFileInterface(*image->session, buffer->getMemBufferRef());
  if (!interface) return llvm::toString(interface.takeError());
  orc::SymbolLookupSet symbols;
  for (const auto& [name, flags] : interface->SymbolFlags) symbols.add(name);
  if (llvm::Error error = image->linker->add(*image->dylib, std::move(buffer))) {
    return llvm::toString(std::move(error));
  }
  auto found = image->session->lookup(orc::makeJITDylibSearchOrder(image->dylib), symbols);
  if (!found) return image->errors + llvm::toString(found.takeError());
  return "";
}

}  // namespace
}  // namespace tl_cpu

int32_t tl_cpu_load(const char* object, size_t size, tl_cpu_resolver resolve, void* context,
                    tl_cpu_image** image, tl_cpu_bytes* log) {
  tl_cpu::GiveBytes("", log);
  if (object == nullptr || image == nullptr) {
    tl_cpu::GiveBytes("invalid arguments", log);
    return 1;
  }
  *image = nullptr;
  auto loaded = std::make_unique<tl_cpu_image>();
  const std::string error = tl_cpu::Guarded(
      [&] { return tl_cpu::Load(llvm::StringRef(object, size), resolve, context, loaded.get()); });
  if (!error.empty()) {
    tl_cpu::GiveBytes(error, log);
    return 1;
  }
  *image = loaded.release();
  return 0;
}

void* tl_cpu_symbol(tl_cpu_image* image, const char* name) {
  if (image == nullptr || name == nullptr) return nullptr;
  auto found = image->session->lookup({image->dylib}, name);
  if (!found) {
    llvm::consumeError(found.takeError());
    return nullptr;
  }
  return found->getAddress().toPtr<void*>();
}

void tl_cpu_unload(tl_cpu_image* image) { delete image; }
