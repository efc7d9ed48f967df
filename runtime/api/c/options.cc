#include "runtime/api/c/options.h"

#include <algorithm>
#include <charconv>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "graph/base/edit_distance.h"
#include "runtime/api/c/convert.h"

namespace eddy::c {
namespace {

using Read = std::function<Refusal(const std::string& key, std::string_view value)>;
// A key that ends in '.' stands for all that begin with it.
struct Key {
  std::string name;
  Read read;
};

Refusal bad_value(const std::string& key, std::string_view value, const std::string& wanted) {
  return {EDDY_INVALID_ARGUMENT,
          "option '" + key + "' is '" + std::string(value) + "'; give " + wanted};
}

template <typename T>
bool parse(std::string_view text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

template <typename T>
Read number(T& to, int64_t least, int64_t most) {
  return [&to, least, most](const std::string& key, std::string_view value) -> Refusal {
    int64_t read = 0;
    if (!parse(value, read) || read < least || read > most) {
      return bad_value(key, value,
                       "a number from " + std::to_string(least) + " to " + std::to_string(most));
    }
    to = static_cast<T>(read);
    return {};
  };
}

Read boolean(std::function<void(bool)> set) {
  return [set = std::move(set)](const std::string& key, std::string_view value) -> Refusal {
    if (value != "true" && value != "false") return bad_value(key, value, "true or false");
    set(value == "true");
    return {};
  };
}

template <typename T>
Read one_of(T& to, std::vector<std::pair<std::string, T>> names) {
  return [&to, names = std::move(names)](const std::string& key, std::string_view value) {
    std::string all;
    for (const auto& [name, meaning] : names) {
      if (name == value) {
        to = meaning;
        return Refusal();
      }
      all += (all.empty() ? "" : ", ") + name;
    }
    return bad_value(key, value, "one of " + all);
  };
}

Read text(std::string& to) {
  return [&to](const std::string&, std::string_view value) {
    to = value;
    return Refusal();
  };
}

// "300mb", "2gb", "4096".
Read bytes(size_t& to) {
  return [&to](const std::string& key, std::string_view value) -> Refusal {
    const size_t digits = std::min(value.find_first_not_of("0123456789"), value.size());
    const std::string_view unit = value.substr(digits);
    const int shift = unit.empty()   ? 0
                      : unit == "kb" ? 10
                      : unit == "mb" ? 20
                      : unit == "gb" ? 30
                                     : -1;
    uint64_t read = 0;
    if (shift < 0 || !parse(value.substr(0, digits), read) ||
        read > std::numeric_limits<size_t>::max() >> shift) {
      return bad_value(key, value, "bytes, or a number with kb, mb or gb");
    }
    to = static_cast<size_t>(read) << shift;
    return {};
  };
}

std::string behind_dot(const std::string& key) { return key.substr(key.find('.') + 1); }

Read dimension(SessionOptions& options) {
  return [&options](const std::string& key, std::string_view value) -> Refusal {
    int64_t size = 0;
    if (!parse(value, size) || size < 0) return bad_value(key, value, "a size of 0 or more");
    options.dims.emplace_back(behind_dot(key), size);
    return {};
  };
}

Read shape(SessionOptions& options) {
  return [&options](const std::string& key, std::string_view value) -> Refusal {
    Dims dims;
    for (std::string_view rest = value; !rest.empty();) {
      const size_t end = std::min(rest.find('x'), rest.size());
      int64_t size = 0;
      const bool is_last = end == rest.size();
      if (!parse(rest.substr(0, end), size) || size < 0 || dims.rank() == kMaxRank ||
          (!is_last && end + 1 == rest.size())) {
        return bad_value(key, value, "sizes with x between them, 1x3x224x224");
      }
      dims.push_back(size);
      rest.remove_prefix(is_last ? end : end + 1);
    }
    options.input_dims.emplace_back(behind_dot(key), dims);
    return {};
  };
}

Refusal unknown(const std::string& key, const std::vector<Key>& keys) {
  const auto nearest = std::min_element(keys.begin(), keys.end(), [&](const Key& a, const Key& b) {
    return edit_distance(key, a.name) < edit_distance(key, b.name);
  });
  return {EDDY_INVALID_ARGUMENT, "there is no option '" + key + "'; the nearest is '" +
                                     nearest->name + (nearest->name.back() == '.' ? "NAME'" : "'")};
}

Refusal read_options(const eddy_option* given, size_t count, const std::vector<Key>& keys) {
  if (count > 0) EDDY_C_TRY(need(given, "list of options"));
  for (size_t i = 0; i < count; ++i) {
    EDDY_C_TRY(need(given[i].key, "key of an option"));
    const std::string key = given[i].key;
    EDDY_C_TRY(need(given[i].value, ("value of option '" + key + "'").c_str()));
    const auto found = std::find_if(keys.begin(), keys.end(), [&](const Key& each) {
      return each.name.back() == '.' ? key.starts_with(each.name) && key.size() > each.name.size()
                                     : key == each.name;
    });
    if (found == keys.end()) return unknown(key, keys);
    const auto is_it = [&](const eddy_option& each) { return key == each.key; };
    if (std::any_of(given, given + i, is_it)) {
      return {EDDY_INVALID_ARGUMENT, "option '" + key + "' is given twice; leave one out"};
    }
    EDDY_C_TRY(found->read(key, given[i].value));
  }
  return {};
}

constexpr int64_t kMostThreads = 4096;

}  // namespace

Refusal read_context_options(const eddy_option* given, size_t count, int& num_threads) {
  return read_options(given, count, {{"threads", number(num_threads, 0, kMostThreads)}});
}

Refusal read_session_options(const eddy_option* given, size_t count, SessionOptions& options,
                             CallerOptions& own) {
  int num_threads = -1;
  const int64_t any = std::numeric_limits<uint32_t>::max();
  EDDY_C_TRY(read_options(
      given, count,
      {{"threads", number(num_threads, 0, kMostThreads)},
       {"memory_limit", bytes(options.memory_limit_bytes)},
       {"max_runs_in_flight", number(options.max_runs_in_flight, 0, any)},
       {"max_runs_waiting", number(options.max_runs_waiting, 0, any)},
       {"max_streams", number(options.max_streams, 0, any)},
       {"loops",
        one_of(options.loops,
               {{"auto", Loops::kAuto}, {"host", Loops::kHost}, {"device", Loops::kDevice}})},
       {"assignment", one_of(options.assignment, {{"auto", Assignment::kAuto},
                                                  {"rank", Assignment::kRank},
                                                  {"matching", Assignment::kMatching},
                                                  {"serial", Assignment::kSerial}})},
       {"share_program", boolean([&](bool is) { options.shares_program = is; })},
       {"simplify", boolean([&](bool is) { options.simplify = is; })},
       {"fold_norms", boolean([&](bool is) { options.folds_norms = is; })},
       {"exact", boolean([&](bool is) {
          options.blocks_channels = !is;
          if (is) options.folds_norms = false;
        })},
       {"check_memory", boolean([&](bool is) { own.checks_memory = is; })},
       {"answer_limit_ms", number(own.answer_limit_ms, 0, any)},
       {"time_operators", boolean([&](bool is) { options.times_operators = is; })},
       {"device", text(own.accelerator.device)},
       {"tf32", boolean([&](bool is) { own.accelerator.allows_tf32 = is; })},
       {"channels_last", boolean([&](bool is) { own.accelerator.channels_last = is; })},
       {"measure_convolutions",
        boolean([&](bool is) { own.accelerator.measures_convolutions = is; })},
       {"locate_faults", boolean([&](bool is) { options.locate_faults = is; })},
       {"dim.", dimension(options)},
       {"shape.", shape(options)}}));
  // Threads of the session's own, instead of its context's.
  if (num_threads >= 0) {
    options.threads = nullptr;
    options.num_threads = num_threads;
  }
  return {};
}

}  // namespace eddy::c
