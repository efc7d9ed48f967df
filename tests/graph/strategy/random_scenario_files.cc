// The random half of scenario_reference.h: files with loops and branches, and their JSON.
#include <algorithm>

#include <fmt/format.h>

#include "tests/graph/strategy/loop_files.h"
#include "tests/graph/strategy/scenario_reference.h"

namespace eddy::scenario_reference {
namespace {

using Kind = Entry::Kind;

class Maker {
 public:
  Maker(Random& random, int max_controls) : random_(random), controls_left_(max_controls) {}

  // `visible`: what entries of the list may read.
  List list(std::vector<std::string> visible, int depth) {
    List made;
    const uint64_t count = depth == 0             ? 2 + random_.below(3)
                           : random_.below(8) > 0 ? 1 + random_.below(2)
                                                  : 0;
    for (uint64_t i = 0; i < count; ++i) {
      const bool is_control = depth < 3 && controls_left_ > 0 && random_.below(2) == 0;
      made.push_back(is_control ? control(visible, depth) : op(visible));
      visible.push_back(made.back().name);
    }
    return made;
  }

 private:
  using Names = std::vector<std::string>;

  std::string name(const char* kind) { return fmt::format("{}{}", kind, next_++); }
  int device() { return static_cast<int>(random_.below(kNumDevices)); }
  Names some(const Names& of, uint64_t most) {
    Names names;
    for (uint64_t n = of.empty() ? 0 : random_.below(most + 1); n > 0; --n) {
      // Those last made are read more often.
      const uint64_t back = std::min(random_.below(of.size()), random_.below(of.size()));
      names.push_back(of[of.size() - 1 - back]);
    }
    std::ranges::sort(names);
    names.erase(std::ranges::unique(names).begin(), names.end());
    return names;
  }

  Entry op(const Names& visible) {
    Entry entry;
    entry.name = name("op");
    entry.inputs = some(visible, 2);
    entry.time = 4 * static_cast<int>(random_.below(6));
    for (uint64_t n = uint64_t{1} << random_.below(3); n > 0; --n)
      entry.devices.push_back(device());
    return entry;
  }

  Entry control(const Names& visible, int depth) {
    --controls_left_;
    Entry entry;
    entry.kind = random_.below(5) < 3 ? Kind::kLoop : Kind::kCase;
    entry.name = name(entry.kind == Kind::kLoop ? "loop" : "case");
    if (random_.below(4) == 0) entry.inputs = some(visible, 1);
    if (random_.below(2) == 0) entry.devices = {device()};
    entry.time = static_cast<int>(random_.below(3));
    if (entry.kind == Kind::kLoop) {
      add_loop_lists(entry, visible, depth);
    } else {
      for (uint64_t n = 2 + random_.below(2); n > 0; --n) {
        entry.lists.push_back(list(visible, depth + 1));
      }
    }
    entry.values.clear();
    const auto bound = entry.kind == Kind::kLoop ? 4 : entry.lists.size();
    const auto first = static_cast<int64_t>(random_.below(bound));
    entry.values.push_back(first);
    entry.values.push_back((first + 1 + static_cast<int64_t>(random_.below(bound - 1))) %
                           static_cast<int64_t>(bound));
    return entry;
  }

  void add_loop_lists(Entry& entry, Names visible, int depth) {
    const Names outside = visible;
    for (uint64_t n = random_.below(3); n > 0; --n) {
      entry.carried.push_back({name("value"), "", ""});
      visible.push_back(entry.carried.back().name);
    }
    entry.lists.push_back(random_.below(2) == 0 ? List() : list(visible, depth + 1));
    Names inside = visible;
    for (const Entry& inner : entry.lists[0]) inside.push_back(inner.name);
    entry.lists.push_back(list(inside, depth + 1));
    for (const Entry& inner : entry.lists[1]) inside.push_back(inner.name);
    for (Carried& value : entry.carried) {
      if (!outside.empty() && random_.below(3) > 0) {
        value.initial = outside[random_.below(outside.size())];
      }
      const uint64_t back = std::min(random_.below(inside.size()), random_.below(inside.size()));
      value.next = inside[inside.size() - 1 - back];
    }
  }

  Random& random_;
  int controls_left_;
  int next_ = 0;
};

std::string values_text(const Entry& control, const Record* record_or_null) {
  if (record_or_null != nullptr) {
    const auto found = record_or_null->find(control.name);
    const std::vector<int64_t> none = {0};
    return fmt::format("\"trace\":[{}]",
                       fmt::join(found == record_or_null->end() ? none : found->second, ","));
  }
  const double probability = 1.0 / static_cast<double>(control.values.size());
  std::vector<std::string> pairs;
  for (const int64_t value : control.values) {
    pairs.push_back(fmt::format("[{},{}]", value, probability));
  }
  return fmt::format("\"distribution\":[{}]", fmt::join(pairs, ","));
}

struct Text {
  const Record* record_or_null;
  Random random;
  std::vector<loop_files::Placed> strategy = {};

  std::string list(const List& entries) {
    std::vector<std::string> texts;
    for (const Entry& entry : entries) {
      const uint64_t place = random.below(texts.size() + 1);
      texts.insert(texts.begin() + static_cast<std::ptrdiff_t>(place), one(entry));
    }
    return loop_files::list(texts);
  }

  std::string one(const Entry& entry) {
    if (entry.kind == Kind::kOperator) {
      loop_files::Placed& placed = strategy.emplace_back();
      placed.op = entry.name;
      for (const int device : entry.devices) placed.devices.push_back({char('a' + device)});
      return loop_files::op(entry.name, entry.time, entry.inputs);
    }
    std::vector<std::string> inputs;
    for (const std::string& name : entry.inputs) inputs.push_back('"' + name + '"');
    std::vector<std::string> lists;
    for (const List& inner : entry.lists) lists.push_back(list(inner));
    const std::string device =
        entry.devices.empty() ? ""
                              : fmt::format(",\"device\":\"{}\"", char('a' + entry.devices[0]));
    const std::string start = fmt::format(
        R"({{"name":"{}","inputs":{},"decision":{{"time":{}{}}},{},)", entry.name,
        loop_files::list(inputs), entry.time, device, values_text(entry, record_or_null));
    if (entry.kind == Kind::kCase) {
      return start + R"("type":"case","branches":)" + loop_files::list(lists) + "}";
    }
    std::vector<std::string> carried;
    for (const Carried& value : entry.carried) {
      carried.push_back(loop_files::carried(value.name, value.next, value.initial));
    }
    return start + fmt::format(R"("type":"while","before":{},"body":{},"carried":{}}})", lists[0],
                               lists[1], loop_files::list(carried));
  }
};

}  // namespace

List random_file(Random& random, int max_controls) {
  return Maker(random, max_controls).list({}, 0);
}

std::string file_text(const List& root, const Record* record_or_null, uint64_t seed) {
  Text text{record_or_null, Random(seed)};
  const std::string operators = text.list(root);
  return "{\"operators\":" + operators +
         ",\"strategy\":" + loop_files::strategy_text(text.strategy) +
         ",\"topology\":" + loop_files::kRing + "}";
}

}  // namespace eddy::scenario_reference
