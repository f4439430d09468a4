
// ---- How the host runs the kernels above. ----
template <int... I>
struct TlIndices {};
template <int N, int... I>
struct TlCount : TlCount<N - 1, N - 1, I...> {};
template <int... I>
struct TlCount<0, I...> {
  using Type = TlIndices<I...>;
};

template <class... A, int... I>
static void tl_apply(void (*kernel)(A...), void** params, TlIndices<I...>) {
  kernel(*(A*)params[I]...);
}
template <class... A>
static void tl_apply(void (*kernel)(A...), void** params) {
  tl_apply(kernel, params, typename TlCount<sizeof...(A)>::Type());
}

struct TlKernel {
  void (*body)(void** params);
};
template <auto kKernel>
static void tl_body(void** params) {
  tl_apply(kKernel, params);
}
extern const TlKernel tl_kernels[];

// Why the launch failed, or null. Blocks run in a random order.
extern "C" const char* tl_emulate(int entry, unsigned blocks, int threads, int groups,
                                  int shared_bytes, void** params, uint64_t seed) {
  if (threads > kTlMaxThreads || shared_bytes > kTlArenaBytes) return "the block is too large";
  const size_t stack_bytes = (size_t)threads * kTlStackBytes;
  void* stacks = mmap(nullptr, stack_bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (stacks == MAP_FAILED) return "there is no memory for stacks";
  tl_machine.stacks = (unsigned char*)stacks;
  tl_machine.threads = threads;
  tl_machine.group_size = threads / groups;
  tl_machine.random = seed * 2 + 1;
  tl_machine.body = tl_kernels[entry].body;
  tl_machine.params = params;
  // A random start and a step that has no common factor with the number of blocks visit each once.
  uint64_t step = tl_random() % blocks + 1;
  auto divides = [&](uint64_t a) {
    uint64_t b = blocks;
    while (b != 0) {
      const uint64_t r = a % b;
      a = b;
      b = r;
    }
    return a != 1;
  };
  while (divides(step)) step = step % blocks + 1;
  uint64_t block = tl_random() % blocks;
  const char* error = nullptr;
  for (unsigned i = 0; i < blocks && error == nullptr; ++i, block = (block + step) % blocks) {
    error = tl_run_block((unsigned)block, shared_bytes);
  }
  munmap(stacks, stack_bytes);
  return error;
}
