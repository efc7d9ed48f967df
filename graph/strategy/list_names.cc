#include "graph/strategy/list_names.h"

#include <algorithm>

#include "graph/simulate/json_fields.h"

namespace eddy {
namespace {

using Json = nlohmann::json;

const Json* array_or_null(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_array() ? &*found : nullptr;
}

}  // namespace

bool is_loop_or_branch(const Json& entry) {
  if (!entry.is_object()) return false;
  const auto type = entry.find("type");
  return type != entry.end() && (*type == "while" || *type == "case");
}

bool has_name(const Json& entry) {
  if (!entry.is_object()) return false;
  const auto name = entry.find("name");
  return name != entry.end() && name->is_string();
}

std::vector<const Json*> lists_inside(const Json& control) {
  std::vector<const Json*> lists;
  for (const char* key : {"before", "body"}) {
    if (const Json* const list = array_or_null(control, key)) lists.push_back(list);
  }
  if (const Json* const branches = array_or_null(control, "branches")) {
    for (const Json& branch : *branches) {
      if (branch.is_array()) lists.push_back(&branch);
    }
  }
  return lists;
}

ListNames::ListNames(const Json& root) {
  add(root, false);
  mark_read(root);
  set_shapes(root);
}

void ListNames::add(const Json& list, bool is_carried) {
  for (const Json& entry : list) {
    const bool is_control = !is_carried && is_loop_or_branch(entry);
    if (has_name(entry)) {
      Known known;
      known.list = &list;
      known.entry = &entry;
      known.is_plain = !is_carried && !is_control;
      if (known.is_plain) known.shape_or_null = array_or_null(entry, "shape");
      names_.emplace(entry["name"].get<std::string>(), known);
    }
    if (!is_control) continue;
    for (const Json* const inner : lists_inside(entry)) add(*inner, false);
    if (const Json* const carried = array_or_null(entry, "carried")) add(*carried, true);
  }
}

void ListNames::mark(const Json& name) {
  const auto text = JsonFields::name_of(name, "");
  if (!text.is_ok()) return;
  const auto found = names_.find(*text);
  if (found != names_.end()) found->second.is_read = true;
}

void ListNames::mark_read(const Json& list) {
  for (const Json& entry : list) {
    if (!entry.is_object()) continue;
    if (const Json* const inputs = array_or_null(entry, "inputs")) {
      for (const Json& input : *inputs) mark(input);
    }
    if (!is_loop_or_branch(entry)) continue;
    mark_carried(entry);
    for (const Json* const inner : lists_inside(entry)) mark_read(*inner);
  }
}

void ListNames::mark_carried(const Json& loop) {
  const Json* const carried = array_or_null(loop, "carried");
  if (carried == nullptr) return;
  const std::vector<const Json*> own = lists_inside(loop);
  for (const Json& value : *carried) {
    if (!value.is_object()) continue;
    if (value.contains("initial")) mark(value["initial"]);
    if (!value.contains("next") || !value["next"].is_string()) continue;
    const Name* const next = find_or_null(value["next"]);
    if (next != nullptr && std::ranges::find(own, next->list) == own.end()) mark(value["next"]);
  }
}

void ListNames::set_shapes(const Json& list) {
  for (const Json& entry : list) {
    if (!is_loop_or_branch(entry)) continue;
    for (const Json* const inner : lists_inside(entry)) set_shapes(*inner);
    if (!has_name(entry)) continue;
    Known& known = names_.at(entry["name"]);
    if (known.entry == &entry) known.shape_or_null = result_shape_or_null(entry);
  }
}

const Json* ListNames::result_shape_or_null(const Json& control) const {
  const Json* last = nullptr;
  for (const Json* const list : lists_inside(control)) {
    if (list->empty()) continue;
    last = list;
    if (control["type"] == "case") break;
  }
  if (last == nullptr) return nullptr;
  const Known* only = nullptr;
  for (const Json& inner : *last) {
    if (!has_name(inner)) continue;
    const Known& known = names_.at(inner["name"]);
    if (known.is_read) continue;
    if (only != nullptr) return nullptr;
    only = &known;
  }
  return only == nullptr ? nullptr : only->shape_or_null;
}

const ListNames::Name* ListNames::find_or_null(const std::string& name) const {
  const auto found = names_.find(name);
  return found == names_.end() ? nullptr : &found->second;
}

void ListNames::set_shape(const std::string& name, const Json* shape_or_null) {
  names_.at(name).shape_or_null = shape_or_null;
}

void ListNames::set_visible(const Json& list, bool is_visible) {
  for (const Json& entry : list) {
    if (has_name(entry)) names_.at(entry["name"]).is_visible = is_visible;
  }
}

}  // namespace eddy
