// KernelRegistry: which kernels a device has. A plain object: no globals, no static registration;
// each kernel library offers one function that adds its kernels, line by line.
//
// Lookup takes the entry with the largest since_version <= the node's, later additions first, and
// falls through to the next entry when bind returns kUnsupported: fast kernels are added after the
// reference kernels and need only handle what they are good at.
//
// Threads: immutable once shared. Cost: bind and has look a name up by halves; adding in the order
// of names appends.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/base/status.h"
#include "ops/contract/kernel.h"

namespace eddy {

struct KernelEntry {
  std::string_view op;  // string literals
  int since_version = 1;
  BindFunction bind = {};
  std::string_view provider = "cpu";  // its library: "reference", "onednn"; for reports
  std::string_view domain = "";
  // What it binds falls into tiles where shapes are large enough: idle workers share its calls.
  bool has_tiles = false;
};

class KernelRegistry {
 public:
  void add(const KernelEntry& entry);
  void add(std::span<const KernelEntry> entries) {
    for (const KernelEntry& entry : entries) add(entry);
  }

  // Binds the best kernel. kUnsupported names the operator, version and types when there is none.
  Result<BoundKernel> bind(const KernelInit& init) const;
  bool has(std::string_view domain, std::string_view op, int since_version) const;
  // Whether an operator has an entry, of this version or before, that says so.
  bool has_tiles(std::string_view domain, std::string_view op, int since_version) const;
  const std::vector<KernelEntry>& entries() const { return entries_; }

 private:
  std::span<const uint32_t> named(std::string_view op) const;  // into entries_, as added

  std::vector<KernelEntry> entries_;
  std::vector<uint32_t> by_name_;  // of entries_; those of one name as added
};

}  // namespace eddy
