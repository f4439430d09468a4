/* tl-worker: the process in which the library runs what may not come back. Started by it, not by
 * people: its standard input is a socket to the process that did. */
#define TL_EXPERIMENTAL
#include "tl/tl.h"

int main(void) { return tl_worker_main(0); }
