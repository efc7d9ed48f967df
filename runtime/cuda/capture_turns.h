// CaptureTurns: keeps what synchronizes a context apart from the captures that are open in it, over
// all sessions of the process.
//
// To unload a module, to destroy a memory pool or to make a library's handle may synchronize the
// whole context, and that spoils every capture in it, of any session.
//
//   a capture         turns.begin_capture() … turns.end_capture()     any number at once
//   such calls        const CaptureTurns::Alone alone(turns);         while no capture is open
//
// Each side waits for the other, and no longer than kPatience: what synchronizes may wait for a
// stream that a host lets go on only when its own recording is made. Then both go ahead, and at the
// worst a recording is lost. Captures of the application are not known here.
//
// Threads: any; a capture may end on another one than it began on. Cost: a lock.
#pragma once

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>

#include "runtime/cuda/cuda_types.h"

namespace eddy {

class CaptureTurns {
 public:
  static constexpr std::chrono::milliseconds kPatience{1000};

  // Those of a context; the same for every session while one has them.
  static std::shared_ptr<CaptureTurns> of(CuContext context);

  void begin_capture() { enter(num_captures_, num_alone_); }
  void end_capture() { leave(num_captures_); }

  class Alone {
   public:
    explicit Alone(CaptureTurns& turns) : turns_(turns) {
      turns_.enter(turns_.num_alone_, turns_.num_captures_);
    }
    ~Alone() { turns_.leave(turns_.num_alone_); }
    Alone(const Alone&) = delete;
    Alone& operator=(const Alone&) = delete;

   private:
    CaptureTurns& turns_;
  };

 private:
  void enter(int& ours, const int& others);
  void leave(int& ours);

  std::mutex mutex_;
  std::condition_variable has_left_;
  int num_captures_ = 0;  // under the mutex
  int num_alone_ = 0;     // under the mutex
};

}  // namespace eddy
