// How many OpenMP threads oneDNN may use: always one. Eddy splits work itself, by shape; a team of
// OpenMP threads inside a worker would oversubscribe the cores.
//
// oneDNN here runs on libgomp, where the number of threads belongs to the calling thread: setting
// it on one thread does not reach another. Every function of this folder calls init_thread()
// first; workers may call it when they start, so that the first kernel does not pay.
// Cost: one read of a thread-local flag after the first call on a thread.
#pragma once

namespace eddy::onednn {

// Not inlined: a caller that was moved between threads would otherwise keep a stale address.
void init_thread();

}  // namespace eddy::onednn
