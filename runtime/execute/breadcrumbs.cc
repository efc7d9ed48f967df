#include "runtime/execute/breadcrumbs.h"

#include <algorithm>
#include <atomic>

namespace eddy {
namespace {

constexpr size_t kNumSources = 2;  // words that hold their own number

int64_t* words(const BufferRef& memory) { return static_cast<int64_t*>(memory.data()); }

}  // namespace

Result<std::unique_ptr<Breadcrumbs>> Breadcrumbs::create(Allocator& memory, size_t num_nodes) {
  EDDY_ASSIGN_OR_RETURN(BufferRef words,
                        memory.allocate((kNumSources + num_nodes) * sizeof(int64_t)));
  return std::unique_ptr<Breadcrumbs>(new Breadcrumbs(std::move(words), num_nodes));
}

Breadcrumbs::Breadcrumbs(BufferRef memory, size_t num_nodes)
    : memory_(std::move(memory)), max_nodes_(num_nodes) {
  for (size_t i = 0; i < kNumSources; ++i) words(memory_)[i] = static_cast<int64_t>(i);
}

void Breadcrumbs::lead(ExecNode& node, Staging& staging) {
  EDDY_CHECK(led_.size() < max_nodes_) << "more than " << max_nodes_ << " nodes leave breadcrumbs";
  auto led = std::make_unique<Led>();
  led->owner = this;
  led->staging = &staging;
  led->node = node.id;
  led->word = words(memory_) + kNumSources + led_.size();
  led->run = node.run;
  led->state = node.args.state;
  *led->word = 0;
  node.run = run_led;
  node.args.state = led.get();
  led_.push_back(std::move(led));
}

std::vector<NodeId> Breadcrumbs::unfinished() const {
  std::vector<NodeId> nodes;
  for (const auto& led : led_) {
    const int64_t word = std::atomic_ref(*led->word).load(std::memory_order_acquire);
    if (word != 0) nodes.push_back(led->node);
  }
  return nodes;
}

bool Breadcrumbs::run_led(const KernelArgs& args) {
  const Led& led = *static_cast<const Led*>(args.state);
  KernelArgs own = args;
  own.state = led.state;
  if (!led.owner->write(led, 1, args)) return false;
  // Of a kernel that was refused nothing is under way.
  const bool is_enqueued = led.run(own);
  KernelArgs behind = args;
  Status second;
  if (!is_enqueued) behind.error = &second;
  return led.owner->write(led, 0, behind) && is_enqueued;
}

bool Breadcrumbs::write(const Led& led, int64_t value, const KernelArgs& args) const {
  Status status = led.staging->copy_word(led.word, words(memory_) + value, args.stream);
  return status.is_ok() || args.fail(std::move(status));
}

}  // namespace eddy
