#include "tools/command/share_machine.h"

#include <sched.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <tuple>
#include <vector>

namespace eddy {
namespace {

// Of this thread; empty where the system does not say.
cpu_set_t allowed_processors() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) != 0) CPU_ZERO(&set);
  return set;
}

// What the process was given, before it kept to less of it.
const cpu_set_t& given_processors() {
  static const cpu_set_t given = allowed_processors();
  return given;
}

int topology(int processor, const std::string& of) {
  std::ifstream file("/sys/devices/system/cpu/cpu" + std::to_string(processor) + "/topology/" + of);
  int number = 0;
  return file >> number ? number : 0;
}

// Those of one core stand together.
std::vector<int> by_core(const cpu_set_t& set) {
  std::vector<std::tuple<int, int, int>> found;
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (!CPU_ISSET(i, &set)) continue;
    found.emplace_back(topology(i, "physical_package_id"), topology(i, "core_id"), i);
  }
  std::ranges::sort(found);
  std::vector<int> processors;
  for (const auto& [package, core, processor] : found) processors.push_back(processor);
  return processors;
}

void keep_to(const std::vector<int>& processors) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int processor : processors) CPU_SET(processor, &set);
  sched_setaffinity(0, sizeof(set), &set);  // refused: all of them stay
}

}  // namespace

void share_machine(SessionOptions& options, const LaunchedRank& rank) {
  const std::vector<int> all = by_core(given_processors());
  const auto share = static_cast<int>(all.size() / rank.num_local);
  if (options.num_threads == 0) options.num_threads = std::max(1, share);
  if (options.memory_limit_bytes > 0) {
    options.memory_limit_bytes = std::max<size_t>(options.memory_limit_bytes / rank.num_local, 1);
  }
  if (rank.num_local == 1 || !rank.number_here || options.num_threads > share) return;
  const auto first = all.begin() + static_cast<ptrdiff_t>(*rank.number_here) * share;
  keep_to({first, first + share});
}

WholeMachine::WholeMachine() : kept_(allowed_processors()) {
  sched_setaffinity(0, sizeof(cpu_set_t), &given_processors());
}
WholeMachine::~WholeMachine() { sched_setaffinity(0, sizeof(kept_), &kept_); }

}  // namespace eddy
