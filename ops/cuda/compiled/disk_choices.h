// DiskChoices: choices beside the compiled kernels on disk (code_cache.h), of one kind of device.
//
// The first that is stored for a key counts, in all processes of the user, for as long as the file
// is there. Errors: none; in a folder that cannot be used nothing is found or kept. Threads and
// processes: any. Cost: a few system calls each.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "ops/cuda/compiled/code_cache.h"
#include "ops/cuda/libraries/kept_choices.h"

namespace eddy {

class DiskChoices : public KeptChoices {
 public:
  DiskChoices(std::string folder, std::string device)
      : cache_(std::move(folder)), device_(std::move(device)) {}

  std::optional<std::string> find(std::string_view key) override {
    return cache_.find(with_device(key));
  }
  std::optional<std::string> keep(std::string_view key, std::string_view choice) override {
    cache_.store_first(with_device(key), choice);
    return find(key);
  }

 private:
  std::string with_device(std::string_view key) const {
    return "choice on " + device_ + ": " + std::string(key);
  }

  const CodeCache cache_;
  const std::string device_;
};

}  // namespace eddy
