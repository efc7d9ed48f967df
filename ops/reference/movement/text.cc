// StringConcat, StringNormalizer, StringSplit and TfIdfVectorizer. Letters change their case one
// for one, as the C library knows them of Unicode in no language; bytes that are no UTF-8 stay.
#include <locale.h>

#include <algorithm>
#include <climits>
#include <cwchar>
#include <cwctype>
#include <map>
#include <string>
#include <vector>

#include "ops/reference/families.h"
#include "ops/reference/parts/broadcast.h"
#include "ops/schema/rules/index_rules.h"

namespace eddy {
namespace {

bool run_concat(const KernelArgs& args) {
  const TensorView& y = args.outputs[0];
  const auto index_of = [&](const TensorView& x) {
    return BroadcastIndex(Dims(x.shape()), y.shape());
  };
  const BroadcastIndex left = index_of(args.inputs[0]), right = index_of(args.inputs[1]);
  for (int64_t i = 0; i < y.count(); ++i) {
    y.mutable_as<std::string>()[i] =
        args.inputs[0].as<std::string>()[left(i)] + args.inputs[1].as<std::string>()[right(i)];
  }
  return true;
}

Result<BoundKernel> bind_concat(const KernelInit&) {
  return BoundKernel{.run = run_concat, .state = nullptr};
}

enum class Case { kAsItIs, kLower, kUpper };

// While it lives, this thread's letters are those of Unicode, where the system has them.
class UnicodeScope {
 public:
  UnicodeScope() : before_(all() == nullptr ? nullptr : uselocale(all())) {}
  ~UnicodeScope() {
    if (before_ != nullptr) uselocale(before_);
  }
  UnicodeScope(const UnicodeScope&) = delete;
  UnicodeScope& operator=(const UnicodeScope&) = delete;

 private:
  static locale_t all() {
    static const locale_t found = newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
    return found;
  }
  const locale_t before_;
};

std::string in_case(const std::string& text, Case wanted) {
  if (wanted == Case::kAsItIs) return text;
  const UnicodeScope scope;
  std::string made;
  const char* const end = text.data() + text.size();
  for (const char* at = text.data(); at < end;) {
    std::mbstate_t state = {};
    wchar_t letter = 0;
    const size_t size = std::mbrtowc(&letter, at, static_cast<size_t>(end - at), &state);
    if (size == 0 || size > MB_LEN_MAX) {  // a zero, or no letter
      made += *at++;
      continue;
    }
    const auto c = static_cast<std::wint_t>(letter);
    const std::wint_t other = wanted == Case::kLower ? std::towlower(c) : std::towupper(c);
    char bytes[MB_LEN_MAX];
    state = {};
    const size_t count = std::wcrtomb(bytes, static_cast<wchar_t>(other), &state);
    made.append(count > MB_LEN_MAX ? at : bytes, count > MB_LEN_MAX ? size : count);
    at += size;
  }
  return made;
}

struct NormalizerState : KernelState {
  Case action = Case::kAsItIs;
  Case compared = Case::kAsItIs;
  std::vector<std::string> left_out;  // sorted, in the case in which words are compared
};

// What is left is a line of its own; of nothing, one empty word.
Status run_normalizer(ValueContext& context) {
  const auto& state = static_cast<const NormalizerState&>(*context.state());
  const TensorView x = context.tensor(0);
  std::vector<std::string> kept;
  for (int64_t i = 0; i < x.count(); ++i) {
    const std::string& word = x.as<std::string>()[i];
    const bool is_left_out = std::binary_search(state.left_out.begin(), state.left_out.end(),
                                                in_case(word, state.compared));
    if (!is_left_out) kept.push_back(in_case(word, state.action));
  }
  if (kept.empty()) kept.emplace_back();
  const auto count = static_cast<int64_t>(kept.size());
  const Dims dims = x.rank == 2 ? Dims{1, count} : Dims{count};
  EDDY_ASSIGN_OR_RETURN(const TensorView y, context.allocate(0, ElementType::kString, dims));
  std::move(kept.begin(), kept.end(), y.mutable_as<std::string>());
  return Status::ok();
}

Result<BoundKernel> bind_normalizer(const KernelInit& init) {
  auto state = std::make_unique<NormalizerState>();
  const std::string_view action = init.attributes.get_string("case_change_action", "NONE");
  state->action = action == "LOWER"   ? Case::kLower
                  : action == "UPPER" ? Case::kUpper
                                      : Case::kAsItIs;
  const bool is_sensitive = init.attributes.get_int("is_case_sensitive", 0) != 0;
  state->compared = is_sensitive ? Case::kAsItIs : Case::kLower;
  for (const std::string& word : init.attributes.get_strings("stopwords")) {
    state->left_out.push_back(in_case(word, state->compared));
  }
  std::sort(state->left_out.begin(), state->left_out.end());
  return BoundKernel{.run_value = run_normalizer, .state = std::move(state)};
}

struct SplitState : KernelState {
  std::string delimiter;  // empty: any run of blanks
  int64_t most = INT64_MAX;
  bool counts = false;  // whether the second output is there
};

constexpr std::string_view kBlanks = " \t\n\v\f\r";

// Between runs of blanks; those at both ends count for nothing. After the last cut the rest of the
// text is one part, with the blanks in it and at its end.
std::vector<std::string_view> split_at_blanks(std::string_view text, int64_t most) {
  std::vector<std::string_view> parts;
  while (true) {
    const size_t begin = text.find_first_not_of(kBlanks);
    if (begin == std::string_view::npos) return parts;
    text.remove_prefix(begin);
    const size_t end = text.find_first_of(kBlanks);
    if (end == std::string_view::npos || std::ssize(parts) == most) {
      parts.push_back(text);
      return parts;
    }
    parts.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
}

std::vector<std::string_view> split(std::string_view text, const SplitState& state) {
  if (state.delimiter.empty()) return split_at_blanks(text, state.most);
  std::vector<std::string_view> parts;
  while (std::ssize(parts) < state.most) {
    const size_t end = text.find(state.delimiter);
    if (end == std::string_view::npos) break;
    parts.push_back(text.substr(0, end));
    text.remove_prefix(end + state.delimiter.size());
  }
  parts.push_back(text);
  return parts;
}

Status run_split(ValueContext& context) {
  const auto& state = static_cast<const SplitState&>(*context.state());
  const TensorView x = context.tensor(0);
  std::vector<std::vector<std::string_view>> parts;
  size_t most = 0;
  for (int64_t i = 0; i < x.count(); ++i) {
    parts.push_back(split(x.as<std::string>()[i], state));
    most = std::max(most, parts.back().size());
  }
  Dims dims(x.shape());
  if (state.counts) {
    EDDY_ASSIGN_OR_RETURN(const TensorView counts, context.allocate(1, ElementType::kInt64, dims));
    for (size_t i = 0; i < parts.size(); ++i) {
      counts.mutable_as<int64_t>()[i] = std::ssize(parts[i]);
    }
  }
  dims.push_back(static_cast<int64_t>(most));
  EDDY_ASSIGN_OR_RETURN(const TensorView y, context.allocate(0, ElementType::kString, dims));
  for (size_t i = 0; i < parts.size(); ++i) {
    std::ranges::copy(parts[i], y.mutable_as<std::string>() + i * most);
  }
  return Status::ok();
}

Result<BoundKernel> bind_split(const KernelInit& init) {
  auto state = std::make_unique<SplitState>();
  state->delimiter = init.attributes.get_string("delimiter", "");
  state->most = init.attributes.get_int("maxsplit", INT64_MAX);
  state->counts = init.outputs.size() > 1;
  return BoundKernel{.run_value = run_split, .state = std::move(state)};
}

template <typename Word>
struct VectorizerState : KernelState {
  struct Gram {
    int64_t place;
    double weight;
  };
  std::map<std::vector<Word>, Gram> grams;
  int64_t least = 1, most = 1, skips = 0;
  bool counts = true;  // else a gram counts once
};

std::string word_at(const TensorView& x, int64_t i, const std::string&) {
  return x.as<std::string>()[i];
}
int64_t word_at(const TensorView& x, int64_t i, const int64_t&) { return index_at(x, i); }

// Grams of each length with each number of words left out between their words.
template <typename Word>
bool run_vectorizer(const KernelArgs& args) {
  const auto& state = static_cast<const VectorizerState<Word>&>(*args.state);
  const TensorView &x = args.inputs[0], &y = args.outputs[0];
  const int64_t words = x.dims[x.rank - 1], width = y.dims[y.rank - 1];
  const int64_t lines = x.rank == 2 ? x.dims[0] : 1;
  std::fill_n(y.mutable_as<float>(), y.count(), 0.0f);
  std::vector<Word> gram;
  for (int64_t line = 0; line < lines; ++line) {
    float* out = y.mutable_as<float>() + line * width;
    for (int64_t length = state.least; length <= std::min(state.most, words); ++length) {
      const int64_t most_apart = length == 1 ? 1 : std::min(state.skips, words) + 1;
      for (int64_t apart = 1; apart <= most_apart; ++apart) {
        for (int64_t first = 0; first + (length - 1) * apart < words; ++first) {
          gram.clear();
          for (int64_t i = 0; i < length; ++i) {
            gram.push_back(word_at(x, line * words + first + i * apart, Word()));
          }
          const auto found = state.grams.find(gram);
          if (found == state.grams.end()) continue;
          float& value = out[found->second.place];
          const auto weight = static_cast<float>(found->second.weight);
          value = state.counts ? value + weight : weight;
        }
      }
    }
  }
  return true;
}

template <typename Word>
Result<BoundKernel> bind_vectorizer(const KernelInit& init, std::span<const Word> pool) {
  auto state = std::make_unique<VectorizerState<Word>>();
  const Attributes& attributes = init.attributes;
  state->least = attributes.get_int("min_gram_length", 1);
  state->most = attributes.get_int("max_gram_length", 1);
  state->skips = attributes.get_int("max_skip_count", 0);
  const std::string_view mode = attributes.get_string("mode", "TF");
  state->counts = mode != "IDF";
  const std::span<const int64_t> starts = attributes.get_ints("ngram_counts");
  const std::span<const int64_t> places = attributes.get_ints("ngram_indexes");
  const std::span<const float> weights = attributes.get_floats("weights");
  size_t number = 0;
  for (size_t i = 0; i < starts.size(); ++i) {
    const size_t end = i + 1 < starts.size() ? static_cast<size_t>(starts[i + 1]) : pool.size();
    for (auto at = static_cast<size_t>(starts[i]); at < end; at += i + 1, ++number) {
      const std::vector<Word> gram(pool.begin() + static_cast<int64_t>(at),
                                   pool.begin() + static_cast<int64_t>(at + i + 1));
      const double weight = mode == "TF" || weights.empty() ? 1 : weights[number];
      state->grams.insert({gram, {places[number], weight}});
    }
  }
  return BoundKernel{.run = run_vectorizer<Word>, .state = std::move(state)};
}

Result<BoundKernel> bind_vectorizer(const KernelInit& init) {
  if (init.inputs[0].tensor.element == ElementType::kString) {
    return bind_vectorizer<std::string>(init, init.attributes.get_strings("pool_strings"));
  }
  return bind_vectorizer<int64_t>(init, init.attributes.get_ints("pool_int64s"));
}

}  // namespace

void add_text_reference(KernelRegistry& registry) {
  registry.add(
      {.op = "StringConcat", .since_version = 20, .bind = bind_concat, .provider = "reference"});
  registry.add({.op = "StringNormalizer",
                .since_version = 10,
                .bind = bind_normalizer,
                .provider = "reference"});
  registry.add(
      {.op = "StringSplit", .since_version = 20, .bind = bind_split, .provider = "reference"});
  registry.add({.op = "TfIdfVectorizer",
                .since_version = 9,
                .bind = [](const KernelInit& init) { return bind_vectorizer(init); },
                .provider = "reference"});
}

}  // namespace eddy
