#include "examples/dsl/compiler.h"

#include <algorithm>
#include <functional>
#include <set>

#include "examples/dsl/operations.h"

namespace dsl {
namespace {

constexpr size_t kMaxNodes = 500'000;  // compiled, in all passes, with calls written out

using Names = std::set<Name>;

// Types that the loops carry, in the order in which a pass comes by them.
struct Carried {
  std::vector<std::vector<eddy_type>> types;
  bool has_widened = false;
  size_t num_nodes = 0;
};

// Compiles the program once, with the types that loops are known to carry.
class Pass {
 public:
  Pass(const Functions& functions, const eddy::Library& library, const std::string& file,
       Carried& carried)
      : functions_(functions), o_(library, file), carried_(carried) {}

  Compiled compile(const Node& program, const Types& types) {
    for (const auto& [name, type] : types) variables_[name] = o_.graph().input(name, type);
    const auto inputs = variables_;
    for (const Node& statement : program.parts) run(statement);
    Compiled made{o_.graph(), std::move(shown_), {}};
    for (const auto& [name, value] : variables_) {
      const auto before = inputs.find(name);
      if (before != inputs.end() && before->second == value) continue;
      made.graph.output("=" + std::string(name), value);
      made.kept.emplace_back(name);
    }
    return made;
  }

 private:
  // ---- Variables: what is seen here, in this region of this call ----
  ValueId& variable(Name name, Position at) {
    const auto it = variables_.find(name);
    if (it != variables_.end()) return it->second;
    throw Failure(at, "there is no " + quote(name) + " here; declare it with let");
  }
  // Adds those that a part of the program assigns and does not declare itself.
  void find_assigned(const Node& node, Names& found) const {
    if (node.kind == Kind::kSet && variables_.contains(node.name)) found.insert(node.name);
    for (const Node& part : node.parts) find_assigned(part, found);
  }
  Values current(const Names& names) {
    Values values;
    for (const Name name : names) values.push_back(variables_[name]);
    return values;
  }
  void set(const Names& names, const Values& values) {
    for (size_t k = 0; const Name name : names) variables_[name] = values[k++];
  }
  // Inside of a region, where the names have these values: those at its end, and the body's, if
  // any.
  Values within(const Names& names, const Values& values, const std::function<ValueId()>& body) {
    const auto outside = variables_;
    set(names, values);
    ++num_regions_;
    const ValueId result = body();
    --num_regions_;
    Values made = current(names);
    if (result != 0) made.push_back(result);
    variables_ = outside;
    return made;
  }
  ValueId promise(const eddy_type& type, ValueId value, Position at) {
    if (type.element == EDDY_UNDEFINED) return value;
    value = o_.as(type.element, value, at);
    const eddy_type found = o_.type(value);
    if (fits(found, type)) return value;
    throw Failure(at, "this is " + print_type(found) + ", not always " + print_type(type));
  }
  void declare(const Node& node, ValueId value) {
    if (num_regions_ > 0 && variables_.contains(node.name)) {
      throw Failure(node.at, "there is a " + quote(node.name) + " already; leave out the let");
    }
    variables_[node.name] = promise(node.type, value, node.at);
  }
  void descend(const Node& node) {
    if (++depth_ > kMaxDepth) throw Failure(node.at, "this is nested too deeply, calls included");
    if (++carried_.num_nodes > kMaxNodes) {
      throw Failure(node.at, "the program is too long, with its calls written out");
    }
  }

  // ---- Statements ----
  // The value of the statement of kind `last` at the end, or 0.
  ValueId run_block(const Node& block, Kind last) {
    for (const Node& statement : block.parts) {
      const bool is_last = &statement == &block.parts.back();
      if (is_last && statement.kind == last) return value(statement.parts[0]);
      run(statement);
    }
    return 0;
  }

  void run(const Node& node) {
    descend(node);
    if (node.kind == Kind::kLet) {
      declare(node, value(node.parts[0]));
    } else if (node.kind == Kind::kSet) {
      const ValueId made = value(node.parts[0]);
      ValueId& before = variable(node.name, node.at);
      before = o_.as(o_.type(before).element, made, node.parts[0].at);
    } else if (node.kind == Kind::kWhile) {
      loop(node);
    } else if (node.kind == Kind::kValue && node.parts[0].kind == Kind::kCase) {
      Names names;
      find_assigned(node, names);
      const Values before = current(names);
      set(names, choose(node.parts[0], names.size(), [&](const Node* block) {
            return within(names, before,
                          [&] { return block == nullptr ? 0 : run_block(*block, Kind::kBlock); });
          }));
    } else if (node.kind == Kind::kYield || node.kind == Kind::kReturn) {
      throw Failure(node.at, "yield ends the block of a while, return that of a function");
    } else {
      if (num_regions_ > 0) throw Failure(node.at, "this stands outside of loops and functions");
      const ValueId made = value(node.parts[0]);
      o_.graph().output(std::to_string(shown_.size()), made);
      shown_.push_back(&node);
      if (node.kind == Kind::kStream && (num_streams_++ > 0 || !rows_.contains(made))) {
        throw Failure(node.at, "only rows of a loop can be streamed, and those of one alone");
      }
    }
    --depth_;
  }

  void loop(const Node& node) {
    const Node& test = node.parts[0];
    const Node& block = node.parts[1];
    Names names;
    find_assigned(block, names);
    if (names.empty()) throw Failure(node.at, "this loop sets no variable, so it would never end");
    const Values initial = current(names);
    const size_t number = num_loops_++;
    if (number == carried_.types.size()) carried_.types.emplace_back();
    widen(carried_.types[number], initial, names.size());
    const std::vector<eddy_type> types = carried_.types[number];
    const eddy_location place = o_.location(node.at, node.text.c_str());
    eddy_while of = {};
    of.types = types.data();
    of.location = &place;
    of.num_rows = !block.parts.empty() && block.parts.back().kind == Kind::kYield;
    const Values made = o_.graph().while_loop(
        initial,
        [&](ValueId, const Values& carried) {
          const auto goes_on = [&] { return o_.as(kBool, value(test), test.at); };
          return eddy::Graph::Test{within(names, carried, goes_on).back(), carried};
        },
        [&](ValueId, const Values& forwarded) {
          const auto body = [&] { return run_block(block, Kind::kYield); };
          const Values next = within(names, forwarded, body);
          widen(carried_.types[number], next, names.size());
          return next;
        },
        of);
    set(names, made);
    if (node.name.empty()) return;
    if (of.num_rows == 0) throw Failure(node.at, "no rows: the block does not end with a yield");
    rows_.insert(made.back());
    declare(node, made.back());
  }

  void widen(std::vector<eddy_type>& types, const Values& values, size_t count) {
    for (size_t k = 0; k < count; ++k) {
      const eddy_type type = o_.type(values[k]);
      if (k == types.size()) types.push_back(type);
      if (fits(type, types[k])) continue;
      types[k] = join(types[k], type);
      carried_.has_widened = true;
    }
  }

  // A case: `body` gives the values of an arm's block, or, of none, where no label fits.
  Values choose(const Node& node, size_t count,
                const std::function<Values(const Node* block)>& body) {
    const Position at = node.parts[0].at;
    ValueId which = value(node.parts[0]);
    const eddy_element element = o_.type(which).element;
    if (element == kReal) throw Failure(at, "a case is of an int or a bool, not of a real");
    std::vector<const Node*> taken;
    const Node* otherwise = nullptr;
    for (size_t i = 1; i < node.parts.size(); ++i) {
      const Node& arm = node.parts[i];
      if (otherwise != nullptr) throw Failure(arm.at, "nothing comes behind else");
      if (arm.type.element != EDDY_UNDEFINED && arm.type.element != element) {
        throw Failure(arm.at, std::string("labels must be those of ") + name_of(element));
      }
      for (const Node* const other : taken) {
        if (arm.ints == other->ints) throw Failure(arm.at, "this case has that label already");
      }
      if (arm.type.element == element) taken.push_back(&arm);
      if (arm.type.element != element) otherwise = &arm;
    }
    if (element == kBool) {
      std::vector<const Node*> both(2, otherwise);
      for (const Node* const arm : taken) both[arm->ints[0] != 0] = arm;
      taken = both;
    } else {  // the number of the first that fits, or of the last
      const auto number = [&](size_t k) { return o_.graph().constant(static_cast<int64_t>(k)); };
      ValueId chosen = number(taken.size());
      for (size_t k = taken.size(); k-- > 0;) {
        const ValueId label = o_.graph().constant(taken[k]->ints[0]);
        chosen = o_.node("Where", {o_.apply("==", {which, label}, at), number(k), chosen}, at);
      }
      which = chosen;
      taken.push_back(otherwise);
    }
    std::vector<std::function<Values()>> branches;
    for (const Node* const block : taken)
      branches.push_back([&body, block] { return body(block); });
    const eddy_location place = o_.location(node.at, "case");
    eddy_case of = eddy::Graph::no_default();
    of.location = &place;
    return o_.graph().case_of(which, count, branches, of);
  }

  // ---- Values ----
  ValueId value(const Node& node) {
    descend(node);
    const ValueId made = evaluate(node);
    --depth_;
    return made;
  }
  ValueId evaluate(const Node& node) {
    if (node.kind == Kind::kNumbers) return o_.numbers(node);
    if (node.kind == Kind::kName) return variable(node.name, node.at);
    if (node.kind == Kind::kRows) return rows(node);
    if (node.kind == Kind::kCase) {
      return choose(node, 1, [&](const Node* block) {
        if (block == nullptr) throw Failure(node.at, "this case has no value without an else");
        if (block->parts.size() != 1 || block->parts[0].kind != Kind::kValue) {
          throw Failure(block->at, "here an arm is one value");
        }
        return within({}, {}, [&] { return run_block(*block, Kind::kValue); });
      })[0];
    }
    const auto function = functions_.find(node.name);
    if (function != functions_.end()) return call(function->second, node);
    Values arguments;
    for (const Node& part : node.parts) arguments.push_back(value(part));
    return o_.apply(node.name, arguments, node.at);
  }

  ValueId call(const Node& function, const Node& node) {
    const Node& block = function.parts.back();
    if (function.parts.size() != node.parts.size() + 1) {
      const std::string count = std::to_string(node.parts.size());
      throw Failure(node.at, quote(node.name) + " does not take " + count + " arguments");
    }
    if (std::ranges::count(calls_, &function) > 0) {
      throw Failure(node.at, quote(node.name) + " calls itself; use while");
    }
    std::map<Name, ValueId> inside;
    for (size_t i = 0; i < node.parts.size(); ++i) {
      const Node& given = node.parts[i];
      inside[function.parts[i].name] = promise(function.parts[i].type, value(given), given.at);
    }
    calls_.push_back(&function);
    const Values made = within({}, {}, [&] {
      variables_ = std::move(inside);
      return run_block(block, Kind::kReturn);
    });
    calls_.pop_back();
    return promise(block.type, made[0], block.parts.back().at);
  }

  // A value for each row: a loop that ends after so many iterations.
  ValueId rows(const Node& node) {
    const Position at = node.parts[1].at;
    const ValueId source = value(node.parts[1]);
    const std::string text = "for " + std::string(node.name);
    const eddy_location place = o_.location(node.at, text.c_str());
    eddy_while of = {};
    of.trip_limit = o_.apply("rows", {source}, at);
    of.num_rows = 1;
    of.location = &place;
    const auto test = [&](ValueId, const Values&) {
      return eddy::Graph::Test{o_.graph().constant(true), {}};
    };
    const auto body = [&](ValueId iteration, const Values&) {
      const ValueId row = o_.apply("index", {source, iteration}, at);
      return Values{within({node.name}, {row}, [&] { return value(node.parts[0]); }).back()};
    };
    return *rows_.insert(o_.graph().while_loop({}, test, body, of)[0]).first;
  }

  const Functions& functions_;
  Operations o_;
  Carried& carried_;
  std::map<Name, ValueId> variables_;
  std::vector<const Node*> calls_;  // functions that are written out here
  size_t num_regions_ = 0;          // around here, calls included
  size_t num_loops_ = 0;
  size_t depth_ = 0;
  std::set<ValueId> rows_;  // of loops
  size_t num_streams_ = 0;
  std::vector<const Node*> shown_;
};

}  // namespace

Compiled compile(const Node& program, const Functions& functions, const Types& variables,
                 const eddy::Library& library, const std::string& file) {
  Carried carried;
  for (;;) {
    carried.has_widened = false;
    Compiled made = Pass(functions, library, file, carried).compile(program, variables);
    if (!carried.has_widened) return made;
  }
}

}  // namespace dsl
