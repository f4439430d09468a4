
// ---- How the host runs the kernels above. ----
template <int... I>
struct TlIndices {};
template <int N, int... I>
struct TlCount : TlCount<N - 1, N - 1, I...> {};
template <int... I>
struct TlCount<0, I...> {
  using Type = TlIndices<I...>;
};

template <class A>
struct TlArgument {
  static A Get(void* param, const TlExtent*) { return *(A*)param; }
};
template <class T>
struct TlArgument<TlGlobal<T>> {
  static TlGlobal<T> Get(void* param, const TlExtent* extent) { return {*(T**)param, extent}; }
};

template <class... A, int... I>
static void tl_apply(void (*kernel)(A...), void** params, const TlExtent* extents,
                     TlIndices<I...>) {
  kernel(TlArgument<A>::Get(params[I], &extents[I])...);
}
template <auto kKernel, class... A>
static void tl_run(void (*kernel)(A...), void** params, const TlExtent* extents) {
  tl_apply(kernel, params, extents, typename TlCount<sizeof...(A)>::Type());
}
template <auto kKernel>
static void tl_body(void** params, const TlExtent* extents) {
  tl_run<kKernel>(kKernel, params, extents);
}

extern TlBody* const tl_bodies[];
extern "C" __attribute__((visibility("default"))) TlBody* tl_entry(int entry, TlApi* api) {
  tl_api = api;
  return tl_bodies[entry];
}
