// Bytes to a run: import, plan, proof, run on the virtual device, or an error of one line.
//
// The order of the virtual device comes from the bytes too. Runs are short, by a deadline and by
// the size of their inputs; a session that is made runs twice and gives the same both times.
#include <memory>

#include "graph/io/import.h"
#include "runtime/api/session.h"
#include "runtime/virtual/virtual_device.h"
#include "tests/fuzz/fuzz_input.h"
#include "tools/check/oracle.h"

namespace eddy {
namespace {

const Library& library() {
  static const Library* const made = new Library();
  return *made;
}

uint64_t hash(std::span<const std::byte> bytes) {
  uint64_t state = 14695981039346656037u;
  for (std::byte b : bytes) state = (state ^ std::to_integer<uint64_t>(b)) * 1099511628211u;
  return state;
}

// Ones, and sizes of two where they are open. Nothing for inputs that are no small tensors.
Result<NamedTensors> make_inputs(const Session& session) {
  constexpr int64_t kMaxElements = 4096;
  NamedTensors inputs;
  for (const ValueDescription& input : session.inputs()) {
    if (!input.type.is_tensor()) return unsupported("an input is no tensor");
    Dims dims;
    for (int64_t dim : input.type.tensor.dims) dims.push_back(dim < 0 ? 2 : dim);
    const auto count = dims.count();
    if (!count || *count > kMaxElements) return unsupported("an input is large");
    inputs.emplace_back(input.name, Tensor::zeros(input.type.tensor.element, dims));
  }
  return inputs;
}

Status run(std::span<const std::byte> bytes) {
  ImportOptions import;
  import.limits.max_nodes = 500;
  import.limits.max_nesting = 16;
  import.limits.min_memory_bytes = size_t{16} << 20;
  EDDY_ASSIGN_OR_RETURN(Graph graph, import_onnx_bytes(bytes, library().ops(), import));
  const uint64_t seed = hash(bytes);
  SessionOptions options;
  options.num_threads = 1;
  options.assignment = seed % 2 == 0 ? Assignment::kRank : Assignment::kMatching;
  options.simplify = seed % 3 != 0;
  options.make_device = [seed]() -> Result<std::shared_ptr<Device>> {
    VirtualDeviceOptions device;
    device.engine.order.seed = seed;
    device.memory_limit_bytes = size_t{32} << 20;
    return std::shared_ptr<Device>(std::make_shared<VirtualDevice>(device));
  };
  EDDY_ASSIGN_OR_RETURN(const auto session, Session::create(library(), std::move(graph), options));
  EDDY_ASSIGN_OR_RETURN(const NamedTensors inputs, make_inputs(*session));
  const RunOptions in_time = {.timeout = std::chrono::milliseconds(20)};
  EDDY_ASSIGN_OR_RETURN(const NamedTensors first, session->run(inputs, in_time));
  const auto second = session->run(inputs, in_time);
  if (second.is_ok()) {
    EDDY_CHECK(check::difference(first, *second).empty()) << check::difference(first, *second);
  }
  return second.status();
}

}  // namespace
}  // namespace eddy

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace eddy;
  if (size > 64 << 10) return 0;
  const Status status = run(fuzz::as_bytes(data, size));
  if (!status.is_ok()) fuzz::expect_one_line(status);
  return 0;
}
