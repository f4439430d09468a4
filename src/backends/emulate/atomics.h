// Atomic updates of elements of a view: the updates themselves take plain pointers.
#define TL_FORWARD(name)                 \
  template <class View, class T>         \
  TL_FN void name(TlPtr<View> p, T v) {  \
    name((typename View::Element*)p, v); \
  }
TL_FORWARD(tl_atomic_add)
TL_FORWARD(tl_atomic_max)
TL_FORWARD(tl_atomic_min)
#undef TL_FORWARD
