#include "runtime/coroutine/poll_set.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "graph/base/check.h"

namespace eddy {
namespace {

// An address that differs from thread to thread.
const void* this_thread() {
  static thread_local char marker;
  return &marker;
}

}  // namespace

bool PollSet::is_polling_here() const {
  return polling_thread_.load(std::memory_order_relaxed) == this_thread();
}

std::unique_lock<std::mutex> PollSet::lock_list() {
  if (is_polling_here()) return {};
  waiting_.fetch_add(1, std::memory_order_relaxed);
  std::unique_lock lock(mutex_);
  waiting_.fetch_sub(1, std::memory_order_relaxed);
  EDDY_DCHECK(polling_thread_.load(std::memory_order_relaxed) == nullptr)
      << "a pass goes on without the lock";
  return lock;
}

PollerId PollSet::add(Poller poller, std::function<Slack()> slack) {
  EDDY_CHECK(poller != nullptr) << "a poller needs a function";
  const std::unique_lock lock = lock_list();
  const PollerId id{++last_id_};
  entries_.push_back(std::make_unique<Entry>(Entry{id, std::move(poller), std::move(slack)}));
  count_.fetch_add(1, std::memory_order_relaxed);
  return id;
}

void PollSet::remove(PollerId id) {
  std::unique_ptr<Entry> dropped;  // destroyed after the lock is gone: it may own anything
  const std::unique_lock lock = lock_list();
  const auto place = std::find_if(entries_.begin(), entries_.end(), [&](const auto& entry) {
    return entry->id == id && !entry->removed;
  });
  EDDY_CHECK(place != entries_.end()) << "no poller " << static_cast<std::uint64_t>(id);
  EDDY_DCHECK(count_.load(std::memory_order_relaxed) > 0) << "a poller was not counted";
  count_.fetch_sub(1, std::memory_order_relaxed);
  if (lock.owns_lock()) {
    dropped = std::move(*place);
    entries_.erase(place);
  } else {
    // It may be the one that runs now: its function lives on until the pass is over.
    (*place)->removed = true;
    sweep_needed_ = true;
  }
}

template <typename Visit>
void PollSet::visit_each(Visit visit) {
  std::vector<std::unique_ptr<Entry>> dropped;  // destroyed after the lock is gone
  EDDY_DCHECK(!is_polling_here()) << "a poller polls the set that it is in";
  const std::unique_lock lock(mutex_);
  polling_thread_.store(this_thread(), std::memory_order_relaxed);
  const std::size_t size = entries_.size();  // those added during the pass wait for the next
  for (std::size_t i = 0; i < size; ++i) {
    if (!entries_[i]->removed) visit(*entries_[i]);
  }
  EDDY_DCHECK(entries_.size() >= size) << "an entry was taken away during a pass";
  polling_thread_.store(nullptr, std::memory_order_relaxed);
  if (!std::exchange(sweep_needed_, false)) return;
  const auto kept = std::stable_partition(entries_.begin(), entries_.end(),
                                          [](const auto& entry) { return !entry->removed; });
  std::move(kept, entries_.end(), std::back_inserter(dropped));
  entries_.erase(kept, entries_.end());
  EDDY_DCHECK(entries_.size() == count_.load(std::memory_order_relaxed))
      << entries_.size() << " pollers are left";
}

bool PollSet::poll() {
  if (is_empty() || waiting_.load(std::memory_order_relaxed) != 0) return false;
  bool found = false;
  visit_each([&found](Entry& entry) { found |= entry.poller(); });
  return found;
}

PollSet::Slack PollSet::slack() {
  Slack least;
  visit_each([&](Entry& entry) {
    const Slack own = entry.slack ? entry.slack() : kNow;
    if (own) least = std::min(*own, least.value_or(*own));
  });
  return least;
}

}  // namespace eddy
