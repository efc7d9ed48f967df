#include "tests/graph/strategy/scenario_reference.h"

#include <algorithm>
#include <deque>
#include <tuple>

#include <fmt/format.h>

namespace eddy::scenario_reference {
namespace {

using Ids = std::set<uint32_t>;
using Kind = Entry::Kind;

void add(Ids& to, const Ids& from) { to.insert(from.begin(), from.end()); }

// A list and where it stands.
struct Scope {
  const Entry* owner = nullptr;  // null: the root
  size_t number = 0;             // of the owner's lists
  const Scope* parent = nullptr;
  const List* list = nullptr;

  bool is_of_loop() const { return owner != nullptr && owner->kind == Kind::kLoop; }
};

// What one reader gets of one maker, and where.
struct Send {
  const Scope* at = nullptr;
  bool is_at_end_of_turn = false;
  std::string maker;
  std::string reader;
  bool is_whole = false;  // each part gets all, else only its own elements
  std::vector<int> devices = {};
  std::string target = {};  // the entry of `at` that has the reader, or is it

  auto key() const { return std::tie(at, is_at_end_of_turn, maker, reader, is_whole); }
};

class Writer {
 public:
  Writer(const List& root, const Choose& choose) : choose_(choose) {
    add_scopes({nullptr, 0, nullptr, &root});
    for (const Scope* const scope : scopes_) {
      for (const Entry& entry : *scope->list) ask(entry, *scope);
    }
    drop_what_has_crossed();
    run_list(*scopes_[0], "", {});
  }

  std::vector<Task> take() { return std::move(tasks_); }

 private:
  void add_scopes(const Scope& scope) {
    const Scope* const kept = &kept_.emplace_back(scope);
    scopes_.push_back(kept);
    for (const Entry& entry : *kept->list) {
      where_[entry.name] = kept;
      entries_[entry.name] = &entry;
      for (const Carried& value : entry.carried) carried_[value.name] = {&entry, &value};
      for (size_t i = 0; i < entry.lists.size(); ++i) {
        add_scopes({&entry, i, kept, &entry.lists[i]});
      }
    }
  }

  static bool has_entry(const List& list, const std::string& name) {
    return std::ranges::any_of(list, [&](const Entry& entry) { return entry.name == name; });
  }
  static bool is_inside(const Entry& control, const std::string& name) {
    return std::ranges::any_of(control.lists,
                               [&](const List& list) { return has_entry(list, name); });
  }

  // All that the entry and what is in it name, of whatever list.
  static void add_names(const Entry& entry, std::set<std::string>& names) {
    names.insert(entry.inputs.begin(), entry.inputs.end());
    for (const Carried& value : entry.carried) {
      names.insert(value.initial);
      if (!is_inside(entry, value.next)) names.insert(value.next);
    }
    for (const List& list : entry.lists) {
      for (const Entry& inner : list) add_names(inner, names);
    }
  }

  // A list's result is what no entry in it reads.
  static std::vector<const Entry*> result_of(const List& list) {
    std::set<std::string> names;
    for (const Entry& entry : list) add_names(entry, names);
    std::vector<const Entry*> result;
    for (const Entry& entry : list) {
      if (!names.contains(entry.name)) result.push_back(&entry);
    }
    return result;
  }
  static const List& last_list(const Entry& loop) {
    return loop.lists[1].empty() ? loop.lists[0] : loop.lists[1];
  }

  // Whether the shape is known; all shapes are the same.
  bool has_shape(const std::string& name) const {
    const auto value = carried_.find(name);
    if (value != carried_.end()) {
      const auto& [loop, carried] = value->second;
      const bool is_own = std::ranges::any_of(
          loop->carried,
          [&, next = carried->next](const Carried& own) { return own.name == next; });
      if (!is_own && has_shape(carried->next)) return true;
      return !carried->initial.empty() && has_shape(carried->initial);
    }
    const Entry& entry = *entries_.at(name);
    if (entry.kind == Kind::kOperator) return true;
    const auto first = std::ranges::find_if(entry.lists, [](const List& l) { return !l.empty(); });
    if (first == entry.lists.end()) return false;
    const auto result = result_of(entry.kind == Kind::kLoop ? last_list(entry) : *first);
    return result.size() == 1 && has_shape(result[0]->name);
  }

  // The devices of operators that wait for nothing.
  static void add_starts(const Entry& control, std::set<int>& devices) {
    for (const List& list : control.lists) {
      for (const Entry& entry : list) {
        if (!entry.inputs.empty()) continue;
        if (entry.kind == Kind::kOperator) {
          devices.insert(entry.devices.begin(), entry.devices.end());
        } else {
          add_starts(entry, devices);
        }
      }
    }
  }

  // What a name stands for in the control: of its carried values and of those of loops in it, their
  // makers.
  void add_makers(const std::string& name, const Entry& control,
                  std::set<std::string>& makers) const {
    const auto value = carried_.find(name);
    const bool is_own = value != carried_.end() && is_in(*value->second.first, control);
    if (!is_own) {
      makers.insert(name);
      return;
    }
    const auto& [loop, carried] = value->second;
    if (!carried->initial.empty()) add_makers(carried->initial, control, makers);
    const std::string next = last_next(*loop, *carried);
    if (!next.empty()) add_makers(next, control, makers);
  }
  // At any depth, or itself.
  bool is_in(const Entry& entry, const Entry& control) const {
    for (const Entry* at = &entry; at != nullptr; at = where_.at(at->name)->owner) {
      if (at == &control) return true;
    }
    return false;
  }

  // Adds the names that operators in it read.
  void add_read(const Entry& entry, const Entry& control, std::set<std::string>& makers) const {
    for (const List& list : entry.lists) {
      for (const Entry& inner : list) {
        add_read(inner, control, makers);
        if (inner.kind != Kind::kOperator) continue;
        for (const std::string& name : inner.inputs) add_makers(name, control, makers);
      }
    }
  }

  void ask(const Entry& entry, const Scope& scope) {
    if (entry.kind == Kind::kOperator) {
      for (const std::string& name : entry.inputs) {
        ask_for(name, {nullptr, false, "", entry.name, !has_shape(name), entry.devices}, scope);
      }
      return;
    }
    std::set<int> devices;
    add_starts(entry, devices);
    std::set<std::string> read;
    add_read(entry, entry, read);
    for (const std::string& name : entry.inputs) {
      if (read.contains(name) || devices.empty()) continue;
      ask_for(name, {nullptr, false, "", entry.name, true, {devices.begin(), devices.end()}},
              scope);
    }
  }

  // Adds the reads of `send.reader`, in the scope, by the name.
  void ask_for(const std::string& name, Send send, const Scope& scope) {
    const auto value = carried_.find(name);
    if (value != carried_.end()) {
      const Entry& loop = *value->second.first;
      const std::string& initial = value->second.second->initial;
      if (!initial.empty()) ask_for(initial, send, scope);
      const std::string next = last_next(loop, *value->second.second);
      if (next.empty() || next == initial) return;
      if (!is_inside(loop, next)) return ask_for(next, send, scope);
      send.at = *std::ranges::find_if(
          scopes_, [&](const Scope* s) { return s->owner == &loop && s->number == 1; });
      send.is_at_end_of_turn = true;
      send.maker = next;
      return keep(std::move(send));
    }
    send.maker = name;
    send.at = &scope;
    const Scope* const from = where_.at(name);
    for (const Scope* at = &scope; at != from; at = at->parent) {
      if (at->is_of_loop() && at->owner == from->owner) break;  // of its `before`
      if (at->is_of_loop()) send.at = at->parent;
    }
    send.target = send.reader;
    while (where_.at(send.target) != send.at) {
      send.target = where_.at(send.target)->owner->name;
    }
    keep(std::move(send));
  }

  static std::string last_next(const Entry& loop, const Carried& value) {
    std::string next = value.next;
    for (size_t i = 0; i <= loop.carried.size(); ++i) {
      const auto own = std::ranges::find(loop.carried, next, &Carried::name);
      if (own == loop.carried.end()) return next;
      next = own->next;
    }
    return "";
  }

  void keep(Send send) {
    const auto is_alike = [&](const Send& other) { return other.key() == send.key(); };
    if (std::ranges::none_of(sends_, is_alike)) sends_.push_back(std::move(send));
  }

  // Drops the values that were read within a turn: they are not sent again at its end.
  void drop_what_has_crossed() {
    const std::vector<Send> all = sends_;
    std::erase_if(sends_, [&](const Send& send) {
      return send.is_at_end_of_turn && std::ranges::any_of(all, [&](const Send& other) {
               return !other.is_at_end_of_turn && other.at->owner == send.at->owner &&
                      other.maker == send.maker && other.reader == send.reader &&
                      other.is_whole == send.is_whole;
             });
    });
  }

  uint32_t make(std::string name, int64_t time, int device, Ids deps) {
    tasks_.push_back({std::move(name), time, device, std::move(deps)});
    return static_cast<uint32_t>(tasks_.size() - 1);
  }

  // By part of the reader: the tasks that have arrived for it.
  using Arrived = std::vector<Ids>;

  // `deps`: by tile of the operator.
  void transfer(const Entry& from, const std::vector<Ids>& deps, const std::string& prefix,
                const Send& send, Arrived& arrived) {
    const int num_tiles = static_cast<int>(from.devices.size());
    const int num_parts = static_cast<int>(send.devices.size());
    arrived.resize(send.devices.size());
    for (int part = 0; part < num_parts; ++part) {
      for (int tile = 0; tile < num_tiles; ++tile) {
        int count = 0;
        for (int i = 0; i < kElements; ++i) {
          const bool is_read = send.is_whole || i * num_parts / kElements == part;
          if (is_read && i * num_tiles / kElements == tile) ++count;
        }
        int at = from.devices[static_cast<size_t>(tile)];
        const int to = send.devices[static_cast<size_t>(part)];
        if (count == 0) continue;
        const std::string name =
            fmt::format("{}{}.{}->{}.{}", prefix, send.maker, tile, send.reader, part);
        const bool has_hops = (at + 1) % kNumDevices != to;
        Ids before = deps[static_cast<size_t>(tile)];
        for (; at != to; at = (at + 1) % kNumDevices) {
          const std::string hop = has_hops ? fmt::format("{}@{}>{}", name, char('a' + at),
                                                         char('a' + (at + 1) % kNumDevices))
                                           : name;
          before = {make(hop, 1 + 4 * count / 2, kNumDevices + at, before)};
        }
        add(arrived[static_cast<size_t>(part)], before);
      }
    }
  }

  void arrive_for_all(const Arrived& from, Arrived& to, size_t num_parts) {
    to.resize(num_parts);
    for (const Ids& ids : from) {
      for (Ids& part : to) add(part, ids);
    }
  }

  // What the last run of a list left, which has ended when `deps` have.
  void send_last(const Entry& maker, const Ids& deps, const std::string& prefix, const Send& send,
                 Arrived& arrived) {
    if (maker.kind == Kind::kOperator) {
      transfer(maker, std::vector<Ids>(maker.devices.size(), deps), prefix, send, arrived);
    } else if (maker.kind == Kind::kLoop) {
      for (const Entry* const inner : result_of(last_list(maker))) {
        send_last(*inner, deps, prefix, send, arrived);
      }
    } else if (last_branch_.contains(maker.name)) {
      const List& branch = maker.lists[static_cast<size_t>(last_branch_.at(maker.name))];
      Arrived after;
      for (const Entry* const inner : result_of(branch)) {
        send_last(*inner, deps, prefix + "after " + maker.name + "/", send, after);
      }
      arrive_for_all(after, arrived, send.devices.size());
    }
  }

  // Sends a value just made in the list itself; for a case, in its branch.
  void send_now(const Entry& maker, const std::string& prefix, const Send& send, Arrived& arrived) {
    if (maker.kind == Kind::kOperator) {
      std::vector<Ids> tiles;
      for (const uint32_t part : parts_.at(maker.name)) tiles.push_back({part});
      transfer(maker, tiles, prefix, send, arrived);
    } else if (maker.kind == Kind::kLoop) {
      send_last(maker, ends_.at(maker.name), prefix, send, arrived);
    } else {
      const List& branch = maker.lists[static_cast<size_t>(last_branch_.at(maker.name))];
      for (const Entry* const inner : result_of(branch)) {
        send_now(*inner, prefix + maker.name + "/", send, arrived);
      }
    }
  }

  // The tasks that the entry of the list waits for beside its maker.
  Arrived receive(const Entry& entry, const Scope& scope, const std::string& prefix,
                  const Ids& begin) {
    Arrived all(entry.kind == Kind::kOperator ? entry.devices.size() : 1);
    for (const Send& send : sends_) {
      if (send.at != &scope || send.is_at_end_of_turn || send.target != entry.name) continue;
      const Entry& maker = *entries_.at(send.maker);
      const bool is_here = where_.at(send.maker) == &scope;
      if (is_here && maker.kind == Kind::kCase) continue;  // its branch has sent it
      Arrived arrived;
      if (is_here) {
        send_now(maker, prefix, send, arrived);
      } else {
        send_last(maker, begin, prefix, send, arrived);
      }
      if (entry.kind == Kind::kOperator) {
        for (size_t part = 0; part < arrived.size(); ++part) add(all[part], arrived[part]);
      } else {
        for (const Ids& ids : arrived) add(all[0], ids);
      }
    }
    return all;
  }

  // Tasks of the list that no other task of it waits for.
  Ids end_of(const Ids& begin, uint32_t first) const {
    Ids end;
    for (uint32_t id = first; id < tasks_.size(); ++id) end.insert(id);
    for (uint32_t id = first; id < tasks_.size(); ++id) {
      for (const uint32_t dep : tasks_[id].deps) end.erase(dep);
    }
    return end.empty() ? begin : end;
  }

  Ids run_list(const Scope& scope, const std::string& prefix, const Ids& begin) {
    const auto first = static_cast<uint32_t>(tasks_.size());
    for (const Entry& entry : *scope.list) {
      Ids waits = begin;
      std::set<std::string> names;
      add_names(entry, names);
      for (const std::string& name : names) {
        if (!has_entry(*scope.list, name)) continue;
        // Parts wait for parts, each for those that it reads of.
        const bool is_by_part = entry.kind == Kind::kOperator && parts_.contains(name);
        if (!is_by_part) add(waits, ends_.at(name));
      }
      const Arrived arrived = receive(entry, scope, prefix, begin);
      if (entry.kind == Kind::kOperator) {
        run_operator(entry, prefix, waits, arrived);
      } else {
        add(waits, arrived[0]);
        run_control(entry, scope, prefix, waits);
      }
    }
    for (const Send& send : sends_) {
      if (send.at == &scope && send.is_at_end_of_turn) send_at_end(send, scope, prefix, begin);
    }
    return end_of(begin, first);
  }

  void send_at_end(const Send& send, const Scope& body, const std::string& prefix,
                   const Ids& begin) {
    const Entry& maker = *entries_.at(send.maker);
    Arrived arrived;
    if (where_.at(send.maker) != &body) {
      send_last(maker, begin, prefix, send, arrived);
    } else if (maker.kind != Kind::kCase) {
      send_now(maker, prefix, send, arrived);
    }
  }

  void run_operator(const Entry& entry, const std::string& prefix, const Ids& waits,
                    const Arrived& arrived) {
    std::vector<uint32_t>& parts = parts_[entry.name];
    parts.clear();
    for (size_t part = 0; part < entry.devices.size(); ++part) {
      Ids deps = waits;
      add(deps, arrived[part]);
      parts.push_back(make(fmt::format("{}{}.{}", prefix, entry.name, part),
                           entry.time / static_cast<int>(entry.devices.size()), entry.devices[part],
                           deps));
    }
    ends_[entry.name] = {parts.begin(), parts.end()};
  }

  static void add_devices(const Entry& entry, std::set<int>& devices) {
    if (entry.kind == Kind::kOperator) {
      devices.insert(entry.devices.begin(), entry.devices.end());
    } else {
      devices.insert(decision_device(entry));
      for (const List& list : entry.lists) {
        for (const Entry& inner : list) add_devices(inner, devices);
      }
    }
  }
  static int decision_device(const Entry& control) {
    if (!control.devices.empty()) return control.devices[0];
    std::set<int> devices;
    for (const List& list : control.lists) {
      for (const Entry& inner : list) add_devices(inner, devices);
    }
    return devices.size() == 1 ? *devices.begin() : 0;
  }

  const Scope& inner_scope(const Entry& control, size_t number) const {
    return **std::ranges::find_if(scopes_, [&](const Scope* scope) {
      return scope->owner == &control && scope->number == number;
    });
  }

  // Forgets cases with this as their innermost loop: they have not been reached.
  void forget_branches(const Entry& control) {
    for (const List& list : control.lists) {
      for (const Entry& inner : list) {
        if (inner.kind != Kind::kCase) continue;
        last_branch_.erase(inner.name);
        forget_branches(inner);
      }
    }
  }

  void run_control(const Entry& entry, const Scope& scope, const std::string& prefix, Ids at) {
    const int64_t value = choose_(entry);
    const int device = decision_device(entry);
    const std::string name = prefix + entry.name;
    if (entry.kind == Kind::kCase) {
      at = {make(name + "?", entry.time, device, at)};
      last_branch_[entry.name] = value;
      const auto first = static_cast<uint32_t>(tasks_.size());
      run_list(inner_scope(entry, static_cast<size_t>(value)), name + "/", at);
      Arrived arrived;
      for (const Send& send : sends_) {
        if (send.at == &scope && send.maker == entry.name) {
          send_now(entry, prefix, send, arrived);
        }
      }
      ends_[entry.name] = end_of(at, first);
      return;
    }
    forget_branches(entry);
    for (int64_t turn = 0;; ++turn) {
      const std::string of_turn = fmt::format("{}[{}]", name, turn);
      at = run_list(inner_scope(entry, 0), of_turn + "/", at);
      at = {make(of_turn + "?", entry.time, device, at)};
      if (turn == value) break;
      at = run_list(inner_scope(entry, 1), of_turn + "/", at);
    }
    ends_[entry.name] = at;
  }

  const Choose& choose_;
  std::deque<Scope> kept_;
  std::vector<const Scope*> scopes_;
  std::map<std::string, const Scope*> where_;
  std::map<std::string, const Entry*> entries_;
  std::map<std::string, std::pair<const Entry*, const Carried*>>
      carried_;  // by name: of which loop
  std::vector<Send> sends_;
  std::vector<Task> tasks_;
  // The parts of the last execution.
  std::map<std::string, std::vector<uint32_t>> parts_;
  std::map<std::string, Ids> ends_;
  std::map<std::string, int64_t> last_branch_;
};

}  // namespace

std::vector<Task> write_out(const List& root, const Choose& choose) {
  return Writer(root, choose).take();
}

}  // namespace eddy::scenario_reference
