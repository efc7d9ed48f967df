// OutputRelay: what a child writes to standard output and standard error, passed on to this
// process's own. mpirun may crash where the one is full or closed, and says nothing of it; here the
// rest is read and dropped, the child goes on, and `Passed` says so.
//
//   EDDY_ASSIGN_OR_RETURN(const auto relay, OutputRelay::open());
//   …fork; in the child:  relay->adopt();
//   relay->start();                          // in the parent
//   const OutputRelay::Passed passed = relay->finish();   // once the child has ended
//
// Contract: the process ignores SIGPIPE. Errors: resource_exhausted where the system gives no pipe.
// Threads: one of its own, which passes on; a reader that is slow holds up the child, as without a
// relay.
// Cost: one more copy of what is written.
#pragma once

#include <cstdint>
#include <memory>
#include <thread>

#include "graph/base/status.h"

namespace eddy {

class OutputRelay {
 public:
  struct Passed {
    uint64_t out_bytes = 0;    // that came for standard output
    uint64_t err_bytes = 0;    // and for standard error
    bool is_out_lost = false;  // which did not take all of it, though its reader was there
  };

  static Result<std::unique_ptr<OutputRelay>> open();
  ~OutputRelay();
  OutputRelay(const OutputRelay&) = delete;
  OutputRelay& operator=(const OutputRelay&) = delete;

  // Between fork and exec: takes no memory.
  void adopt() const;
  void start();
  // Once all is passed on, or, where something of the child lives on, nothing comes any more.
  Passed finish();

 private:
  // A pipe, and where it leads.
  struct Way {
    int from = -1;
    int into = -1;  // the child's end
    int to = -1;
    bool is_broken = false;  // takes no more
  };

  OutputRelay() = default;
  void pass_on(const std::stop_token& stop);
  void pass_some(Way& way);
  void write_all(Way& way, const char* bytes, size_t size);

  Way ways_[2];    // standard output, standard error
  Passed passed_;  // the thread's, until it has ended
  std::jthread thread_;
};

}  // namespace eddy
