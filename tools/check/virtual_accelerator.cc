#include "tools/check/virtual_accelerator.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "graph/base/check.h"
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

// The CPU's kernels as a device's own.
struct Kernels {
  const Library& library;
  HasKernel has_kernel;
  KernelRegistry registry;

  Result<BoundKernel> bind(const KernelInit& init) const {
    if (!has_kernel(init.node_name)) return unsupported("it is wanted on the CPU");
    EDDY_ASSIGN_OR_RETURN(BoundKernel kernel, library.cpu_kernels().bind(init));
    if (kernel.run == nullptr) return unsupported("it makes its own outputs");
    return kernel;
  }
};

}  // namespace

HasKernel all_but(double share, uint64_t seed) {
  EDDY_CHECK(share >= 0 && share <= 1) << "all but " << share;
  return [share, seed](std::string_view name) {
    uint64_t hash = seed;
    for (const char c : name) hash = Random(hash ^ static_cast<unsigned char>(c)).next();
    return static_cast<double>(hash % 1000) >= share * 1000;
  };
}

ExecutionDevice make_virtual_accelerator(std::shared_ptr<VirtualDevice> device,
                                         const Library& library, HasKernel has_kernel) {
  auto owner = std::make_shared<Kernels>(Kernels{library, std::move(has_kernel), {}});
  const BindFunction bind = [from = owner.get()](const KernelInit& init) {
    return from->bind(init);
  };
  // The oldest version of each operator.
  std::vector<const KernelEntry*> oldest;
  for (const KernelEntry& entry : library.cpu_kernels().entries()) oldest.push_back(&entry);
  const auto name = [](const KernelEntry* entry) { return std::pair(entry->op, entry->domain); };
  std::ranges::sort(oldest, {}, [&](const KernelEntry* entry) {
    return std::pair(name(entry), entry->since_version);
  });
  const auto is_same = [&](const auto* a, const auto* b) { return name(a) == name(b); };
  oldest.erase(std::unique(oldest.begin(), oldest.end(), is_same), oldest.end());
  for (const KernelEntry* entry : oldest) {
    owner->registry.add({entry->op, entry->since_version, bind, "virtual", entry->domain});
  }
  const std::shared_ptr<KernelRegistry> kernels(owner, &owner->registry);
  kernels->add({.op = "ToDevice", .bind = bind_copy, .provider = "virtual", .domain = "eddy"});
  kernels->add({.op = "ToHost", .bind = bind_copy, .provider = "virtual", .domain = "eddy"});
  return {std::move(device), kernels};
}

}  // namespace eddy::check
