// PlanFile: the form of a saved plan (saved_plan.h) in a file.
//
//   field 1000   "eddy plan\n", a fingerprint of what follows in this field, then the facts
//   the model    of the fields that ONNX has: the graph as it runs, with its small constants
//   field 1001   zeros up to a multiple of 64, then the data: large constants and packings, each at
//                a multiple of 64, and equal ones once
//
// Together they are one protobuf message of ONNX, for tools that show graphs: of its initializers
// the large ones are external data without a location, which only this reader knows the place of.
// The facts are small and checked by their fingerprint. The data are mapped and checked for size,
// place and alignment alone: what a kernel relies on beyond that, it checks itself
// (ops/contract/packed_constants.h).
//
// Errors (kInvalidArgument): a file that is cut off or spoilt, another version of this form. No
// content causes more than a refusal. Threads: as plain values. Cost: O(facts).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/base/fingerprint.h"
#include "graph/base/status.h"
#include "graph/ir/types.h"

namespace eddy {

struct PlanFile {
  // The plan holds for these alone.
  std::string eddy = {};  // version
  std::string compiler = {};
  std::string kernels = {};  // describe_cpu_kernels()
  // What was decided with it, as in SessionOptions.
  bool simplify = true;
  bool folds_norms = false;
  bool blocks_channels = true;
  std::vector<std::pair<std::string, int64_t>> dims = {};
  std::vector<std::pair<std::string, Dims>> input_dims = {};

  std::string given = {};  // fingerprint of the model's graph, as text
  Fingerprint made = {};   // simplified_fingerprint() of what it became
  std::string graph = {};  // stands for the graph that the file's model gives, with its names
  Fingerprint proved = {};  // of its program, which was proved
  uint64_t model_bytes = 0;
  std::string notes = {};  // its saver's

  struct Packing {
    uint32_t constant = 0;  // of that graph
    std::string layout = {};
    uint64_t offset_bytes = 0;  // in the data
    uint64_t size_bytes = 0;
  };
  std::vector<Packing> packings = {};
};

// Whether the first bytes say so; false for a file that can't be read.
bool is_plan_file(const std::string& path);
bool is_plan_bytes(std::span<const std::byte> start);

// The data of a plan, while it is written.
class PlanData {
 public:
  // Where these bytes stand, of which equal ones have one place. Borrows them.
  uint64_t add(std::span<const std::byte> bytes);
  uint64_t size_bytes() const { return end_; }
  void copy_to(char* to) const;

 private:
  std::map<std::string_view, uint64_t> places_;
  uint64_t end_ = 0;
};

// `plan` gets model_bytes.
std::string format_plan_file(PlanFile& plan, std::string_view model, const PlanData& data);

struct OpenPlanFile {
  PlanFile plan = {};
  // Of the bytes given.
  std::span<const std::byte> model = {};
  std::span<const std::byte> data = {};
};
// Every packing lies within, at a multiple of 64 where the file does.
Result<OpenPlanFile> parse_plan_file(std::span<const std::byte> file);

}  // namespace eddy
