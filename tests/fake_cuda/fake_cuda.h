/* A driver library without a GPU, for tests of what calls it: host memory, two devices of different
 * kinds, launches recorded instead of run. The test steers it through the structure below. */
#ifndef TILEJIT_TESTS_FAKE_CUDA_FAKE_CUDA_H_
#define TILEJIT_TESTS_FAKE_CUDA_FAKE_CUDA_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { kFakeMaxLaunches = 1024, kFakeMaxDevices = 2 };

struct FakeLaunch {
  char symbol[64];
  int device; /* of the context that the function belongs to */
  unsigned grid_x, block_x, shared_bytes;
  void* stream;
  uint64_t first_param; /* 8 bytes at params[0] */
  int early;            /* may start before the launch before it has ended */
  unsigned cluster;     /* blocks */
};

struct FakeCuda {
  /* Set by the test. */
  int init_result;   /* what cuInit returns */
  int num_devices;   /* 0 … kFakeMaxDevices */
  int load_result;   /* what cuModuleLoadDataEx returns; 0: accepts ELF files */
  int launch_result; /* what cuLaunchKernel returns */
  int version;       /* of the driver; 0: 12040 */
  int deinitialized; /* every call fails as after the end of the process' main function */
  int capturing;     /* a stream that the test passes is being captured; 2: the default stream
                        cannot be asked */
  int graphs_fail;   /* streams cannot be captured */
  /* Counted by the library. */
  int retained[kFakeMaxDevices]; /* primary contexts */
  int contexts_pushed;           /* pushes minus pops, all threads */
  int pushes;                    /* all pushes so far */
  int modules, streams, events, graphs, allocations;
  int max_dynamic_shared;
  int num_launches; /* replays of graphs included */
  struct FakeLaunch launches[kFakeMaxLaunches];
};

/* Found by dlsym in the library. */
struct FakeCuda* fake_cuda(void);
void fake_cuda_reset(void);
/* The context of the calling thread: 0, or 1 + number of the device. */
int fake_cuda_current_device(void);
void fake_cuda_set_current_device(int one_plus_device);

#ifdef __cplusplus
}
#endif

#endif /* TILEJIT_TESTS_FAKE_CUDA_FAKE_CUDA_H_ */
