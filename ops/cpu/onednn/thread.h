// OneThread: while it lives, oneDNN uses one OpenMP thread on this thread. Eddy splits work itself,
// by shape; a team of OpenMP threads inside a worker would oversubscribe the cores.
//
// oneDNN here runs on libgomp, where the number of threads belongs to the calling thread: setting
// it on one thread does not reach another. That thread may be an application's, which has OpenMP
// loops of its own, so what it had comes back. Every function of this folder that calls oneDNN
// makes one first.
// Cost: some nanoseconds; it must not live across a move to another thread.
#pragma once

namespace eddy::onednn {

class OneThread {
 public:
  OneThread();
  ~OneThread();
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  const int before_;
};

}  // namespace eddy::onednn
