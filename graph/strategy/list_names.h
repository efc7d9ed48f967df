// ListNames: who is called what in the lists of an operator-graph file with loops and branches
// (scenario_file.h), and the shapes of what they make.
//
// All lists are walked once, before anything in them is read or checked, so that an operator's
// inputs can be told from names that stand elsewhere. What is visible from where is kept by whoever
// reads the lists: it shows the names of a list before it reads what stands in it, and hides them
// afterwards.
//
// The shape of a loop or branch is that of the one operator of its last list (of a branch: its
// first list) that holds any which nobody reads: an operator's input does, and a carried value's
// first or next one, but for what a loop's own lists make for its next turn.
//
// Borrows the file. Errors: none; what is no list or has no name is left out, and of names that
// stand twice the first counts. Threads: none. Cost: linear in the file, lists at most as deep
// as the caller has checked.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <nlohmann/json.hpp>

namespace eddy {

class ListNames {
 public:
  using Json = nlohmann::json;

  struct Name {
    const Json* list = nullptr;           // it stands in
    const Json* entry = nullptr;          // of that list
    const Json* shape_or_null = nullptr;  // not known of carried values, until it is set
    bool is_plain = true;                 // an operator: no loop, branch or carried value
    bool is_visible = false;
  };

  explicit ListNames(const Json& root);

  const Name* find_or_null(const std::string& name) const;
  void set_shape(const std::string& name, const Json* shape_or_null);
  void show(const Json& list) { set_visible(list, true); }
  void hide(const Json& list) { set_visible(list, false); }

 private:
  struct Known : Name {
    bool is_read = false;
  };

  void add(const Json& list, bool is_carried);
  void mark_read(const Json& list);
  void mark_carried(const Json& loop);
  void mark(const Json& name);
  void set_shapes(const Json& list);
  const Json* result_shape_or_null(const Json& control) const;
  void set_visible(const Json& list, bool is_visible);

  std::unordered_map<std::string, Known> names_;
};

// Whether the entry of a list is a loop or branch, and whether it has a name.
bool is_loop_or_branch(const nlohmann::json& entry);
bool has_name(const nlohmann::json& entry);
// The lists of a loop or branch, as far as they are there: before and body, or the branches.
std::vector<const nlohmann::json*> lists_inside(const nlohmann::json& control);

}  // namespace eddy
