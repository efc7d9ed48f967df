// KeptChoices: what was measured once and holds from then on, beyond the process: which of several
// ways that give other bits a library takes. Were it measured anew, a program's bits would change
// from run to run; so a choice that cannot be kept must not be made by the clock.
//
// Implemented on disk (ops/cuda/compiled/disk_choices.h), and by tests. Threads: any.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace eddy {

class KeptChoices {
 public:
  virtual ~KeptChoices() = default;
  virtual std::optional<std::string> find(std::string_view key) = 0;
  // What is kept for the key from now on: this choice, or the one that another thread or process
  // has kept first. None: nothing can be kept.
  virtual std::optional<std::string> keep(std::string_view key, std::string_view choice) = 0;
};

}  // namespace eddy
