#include "backends/emulate/fiber.h"

#include <sys/mman.h>

#if !defined(__x86_64__)
#include <ucontext.h>

#include <memory>
#endif

namespace tl::emulate {

#if defined(__x86_64__)

// Saves what a function has to preserve, on its stack.
extern "C" void tl_emulate_switch(void** from, void* to);
asm(R"(
  .text
  .p2align 4
  .hidden tl_emulate_switch
  .globl tl_emulate_switch
  .type tl_emulate_switch, @function
tl_emulate_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  retq
  .size tl_emulate_switch, . - tl_emulate_switch
  .hidden tl_emulate_start
  .globl tl_emulate_start
  .type tl_emulate_start, @function
tl_emulate_start:
  movq %r12, %rdi
  callq *%rbx
  ud2
  .size tl_emulate_start, . - tl_emulate_start
)");
extern "C" void tl_emulate_start();

void Switch(Context& from, Context& to) {
  tl_emulate_switch(&from.stack_pointer, to.stack_pointer);
}

Context NewContext(void* stack, size_t bytes, void (*main)(void*), void* argument) {
  // What tl_emulate_switch pops: r15, r14, r13, r12, rbx, rbp, and where it returns to. After that
  // the stack is aligned to 16 bytes, as the call in tl_emulate_start wants it.
  void** top = reinterpret_cast<void**>(static_cast<uint8_t*>(stack) + bytes) - 9;
  top[3] = argument;
  top[4] = reinterpret_cast<void*>(main);
  top[5] = nullptr;
  top[6] = reinterpret_cast<void*>(&tl_emulate_start);
  return {top};
}

#else

// The slow way that every system has; a context lives at the low end of its stack.
void Switch(Context& from, Context& to) {
  ucontext_t here;
  from.stack_pointer = &here;
  swapcontext(&here, static_cast<ucontext_t*>(to.stack_pointer));
}

namespace {
void (*start_main)(void*);
void* start_argument;
void Start() { start_main(start_argument); }
}  // namespace

Context NewContext(void* stack, size_t bytes, void (*main)(void*), void* argument) {
  auto* context = new (stack) ucontext_t;
  getcontext(context);
  context->uc_stack.ss_sp = static_cast<uint8_t*>(stack) + sizeof(ucontext_t);
  context->uc_stack.ss_size = bytes - sizeof(ucontext_t);
  context->uc_link = nullptr;
  start_main = main;  // the same for every fiber
  start_argument = argument;
  makecontext(context, Start, 0);
  return {context};
}

#endif

Stacks::~Stacks() {
  if (memory_ != nullptr) munmap(memory_, static_cast<size_t>(count_) * kBytes);
}

bool Stacks::Reserve(int count) {
  if (count <= count_) return true;
  if (memory_ != nullptr) munmap(memory_, static_cast<size_t>(count_) * kBytes);
  memory_ = mmap(nullptr, static_cast<size_t>(count) * kBytes, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  count_ = memory_ == MAP_FAILED ? 0 : count;
  if (memory_ == MAP_FAILED) memory_ = nullptr;
  return memory_ != nullptr;
}

}  // namespace tl::emulate
