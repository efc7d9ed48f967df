#include "tools/check/virtual_accelerator.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <utility>

#include "graph/base/random.h"

namespace eddy::check {
namespace {

bool run_copy(const KernelArgs& args) {
  const TensorView& from = args.inputs[0];
  if (from.size_bytes() > 0) std::memcpy(args.outputs[0].data, from.data, from.size_bytes());
  return true;
}

Result<BoundKernel> bind_copy(const KernelInit& init) {
  if (init.inputs[0].tensor.element == ElementType::kString) {
    return unsupported("strings stay on the host");
  }
  BoundKernel kernel;
  kernel.run = run_copy;
  return kernel;
}

}  // namespace

HasKernel all_but(double share, uint64_t seed) {
  return [share, seed](std::string_view name) {
    uint64_t hash = seed;
    for (const char c : name) hash = Random(hash ^ static_cast<unsigned char>(c)).next();
    return static_cast<double>(hash % 1000) >= share * 1000;
  };
}

std::shared_ptr<const Accelerator> make_virtual_accelerator(std::shared_ptr<VirtualDevice> device,
                                                            const Library& library,
                                                            HasKernel has_kernel) {
  const auto bind = [&library, has_kernel](const KernelInit& init) -> Result<BoundKernel> {
    if (!has_kernel(init.node_name)) return unsupported("it is wanted on the CPU");
    EDDY_ASSIGN_OR_RETURN(BoundKernel kernel, library.cpu_kernels().bind(init));
    if (kernel.run == nullptr) return unsupported("it makes its own outputs");
    return kernel;
  };
  std::map<std::pair<std::string_view, std::string_view>, int> oldest;  // version
  for (const KernelEntry& entry : library.cpu_kernels().entries()) {
    const auto [known, is_new] = oldest.try_emplace({entry.domain, entry.op}, entry.since_version);
    if (!is_new) known->second = std::min(known->second, entry.since_version);
  }
  auto kernels = std::make_shared<KernelRegistry>();
  for (const auto& [name, since_version] : oldest) {
    kernels->add({name.second, since_version, bind, "virtual", name.first});
  }
  kernels->add({.op = "ToDevice", .bind = bind_copy, .provider = "virtual", .domain = "eddy"});
  kernels->add({.op = "ToHost", .bind = bind_copy, .provider = "virtual", .domain = "eddy"});
  auto accelerator = std::make_shared<Accelerator>();
  accelerator->staging = &device->allocator();
  accelerator->is_staging = [](const void*, size_t) { return true; };
  accelerator->device = std::move(device);
  accelerator->kernels = std::move(kernels);
  return accelerator;
}

}  // namespace eddy::check
