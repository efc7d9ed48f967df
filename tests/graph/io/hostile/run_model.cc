// run_model FILE MS: reads a model, makes a session of it, runs it once for at most MS
// milliseconds, and prints the error that ended this ("no error" where none did). The process of
// its own in which the hostile files are tried.
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "runtime/api/session.h"

namespace eddy {
namespace {

// Ones, trues and threes: loops go on, branches are taken. Open dimensions are 2.
Tensor value_for(const TensorType& type) {
  Dims dims;
  for (int64_t dim : type.dims) dims.push_back(dim < 0 ? 2 : dim);
  Tensor tensor = Tensor::zeros(type.element, dims);
  const int64_t count = *dims.count();
  const TensorView view = tensor.view();
  for (int64_t i = 0; i < count; ++i) {
    if (type.element == ElementType::kBool) view.mutable_as<uint8_t>()[i] = 1;
    if (type.element == ElementType::kInt64) view.mutable_as<int64_t>()[i] = 3;
    if (type.element == ElementType::kFloat) view.mutable_as<float>()[i] = 1;
  }
  return tensor;
}

Status run_model(const char* path, std::chrono::milliseconds timeout) {
  const Library library;
  SessionOptions options;
  options.num_threads = 1;
  options.memory_limit_bytes = size_t{96} << 20;
  EDDY_ASSIGN_OR_RETURN(const auto session, Session::load(library, path, options));
  NamedTensors inputs;
  for (const ValueDescription& input : session->inputs()) {
    const auto count = input.type.tensor.dims.count();
    if (count && *count > 1 << 20) return resource_exhausted("input '" + input.name + "' is huge");
    inputs.emplace_back(input.name, value_for(input.type.tensor));
  }
  return session->run(inputs, {.timeout = timeout}).status();
}

}  // namespace
}  // namespace eddy

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fputs("usage: run_model FILE MS\n", stderr);
    return 2;
  }
  const eddy::Status status =
      eddy::run_model(argv[1], std::chrono::milliseconds(std::atoi(argv[2])));
  std::printf("%s\n", status.is_ok() ? "no error" : status.to_string().c_str());
  return 0;
}
