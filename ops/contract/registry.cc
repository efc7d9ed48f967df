#include "ops/contract/registry.h"

#include <algorithm>

#include "graph/base/check.h"

namespace eddy {
namespace {

std::string describe(const KernelInit& init) {
  std::string text = init.op.domain.empty() ? init.op.name : init.op.domain + "." + init.op.name;
  text += " (version " + std::to_string(init.op.since_version) + ") of";
  for (const ValueType& type : init.inputs) text += " " + to_string(type);
  return text;
}

}  // namespace

void KernelRegistry::add(const KernelEntry& entry) {
  EDDY_CHECK(!entry.op.empty() && entry.bind != nullptr)
      << "a kernel of '" << entry.op << "' lacks its name or what binds it";
  const auto place =
      std::upper_bound(by_name_.begin(), by_name_.end(), entry.op,
                       [this](std::string_view op, uint32_t i) { return op < entries_[i].op; });
  by_name_.insert(place, static_cast<uint32_t>(entries_.size()));
  entries_.push_back(entry);
}

std::span<const uint32_t> KernelRegistry::named(std::string_view op) const {
  const auto begin =
      std::lower_bound(by_name_.begin(), by_name_.end(), op,
                       [this](uint32_t i, std::string_view name) { return entries_[i].op < name; });
  const auto end =
      std::upper_bound(begin, by_name_.end(), op,
                       [this](std::string_view name, uint32_t i) { return name < entries_[i].op; });
  return {begin, end};
}

Result<BoundKernel> KernelRegistry::bind(const KernelInit& init) const {
  std::vector<const KernelEntry*> candidates;
  for (const uint32_t index : named(init.op.name)) {
    const KernelEntry& entry = entries_[index];
    if (entry.domain == init.op.domain && entry.since_version <= init.op.since_version) {
      candidates.push_back(&entry);
    }
  }
  std::reverse(candidates.begin(), candidates.end());
  std::stable_sort(candidates.begin(), candidates.end(), [](const auto* a, const auto* b) {
    return a->since_version > b->since_version;
  });
  auto place = static_cast<uint32_t>(candidates.size());  // the preferred one was added last
  std::string reasons;
  for (const KernelEntry* entry : candidates) {
    Result<BoundKernel> kernel = entry->bind(init);
    if (kernel.is_ok()) {
      if (!kernel->run && !kernel->run_value && !kernel->start) {
        return invalid_argument("the kernel of " + std::string(entry->provider) + " for " +
                                describe(init) + " has no function: set run, run_value or start");
      }
      if (kernel->start != nullptr && !init.op.may_wait) {
        return invalid_argument("the kernel of " + std::string(entry->provider) + " for " +
                                describe(init) + " answers later: set may_wait of its operator");
      }
      kernel->provider = entry->provider;
      kernel->since_version = entry->since_version;
      kernel->place = place;
      return kernel;
    }
    if (kernel.status().code() != StatusCode::kUnsupported) return kernel;
    --place;
    const std::string& reason = kernel.status().message();
    if (reasons.ends_with(reason)) continue;  // two kernels that refuse by the same words
    reasons += (reasons.empty() ? "" : "; ") + reason;
  }
  if (reasons.empty()) reasons = "no kernel is registered for it";
  return unsupported("no kernel for " + describe(init) + ": " + reasons);
}

bool KernelRegistry::has(std::string_view domain, std::string_view op, int since_version) const {
  return std::ranges::any_of(named(op), [&](uint32_t index) {
    return entries_[index].domain == domain && entries_[index].since_version <= since_version;
  });
}

bool KernelRegistry::has_tiles(std::string_view domain, std::string_view op,
                               int since_version) const {
  return std::ranges::any_of(named(op), [&](uint32_t index) {
    const KernelEntry& entry = entries_[index];
    return entry.domain == domain && entry.since_version <= since_version && entry.has_tiles;
  });
}

}  // namespace eddy
