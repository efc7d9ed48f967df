#include "tools/check/shrink.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "graph/base/check.h"
#include "graph/ir/print.h"

namespace eddy::check {
namespace {

enum class Outcome { kNone, kChanged, kNoUse };  // none: there are fewer edits than that

// Finds the n-th possible edit of a recipe by walking it, and makes it.
class Editor {
 public:
  Editor(Recipe& recipe, size_t n) : recipe_(recipe), left_(n) {}

  Outcome run() {
    visible_ = recipe_.root.parameters;
    Outcome outcome = walk(recipe_.root);
    if (outcome != Outcome::kNone) return outcome;
    visible_ = recipe_.root.parameters;
    return root_edits();
  }

 private:
  // True for the requested edit.
  bool is_turn() { return left_-- == 0; }
  static Outcome changed(bool is_changed) {
    return is_changed ? Outcome::kChanged : Outcome::kNoUse;
  }

  // Variables by which others are replaced, applied to the whole recipe at the end of an edit.
  class Replacements {
   public:
    void add(Var from, Var to) { pairs_.emplace_back(from, to); }
    void apply(Block& block) const {
      for (Step& step : block.steps) {
        apply(step.reads), apply(step.go_reads), apply(step.limit);
        for (Block& inner : step.blocks) apply(inner);
      }
      apply(block.results);
    }

   private:
    void apply(std::vector<Var>& vars) const {
      for (Var& var : vars) {
        for (const auto& [from, to] : pairs_) {
          if (var == from) var = to;  // a later pair may replace `to` again
        }
      }
    }
    std::vector<std::pair<Var, Var>> pairs_;
  };

  std::optional<Var> other_of_kind(Kind kind) const {
    for (auto var = visible_.rbegin(); var != visible_.rend(); ++var) {
      if (recipe_.kinds[*var] == kind) return *var;
    }
    return {};
  }

  // Replaces each of `vars` that is read by something visible; false when there is nothing of a
  // kind.
  bool replace(const std::vector<Var>& vars, Replacements& replacements) const {
    for (Var var : vars) {
      if (!is_read(recipe_.root, var)) continue;
      const auto other = other_of_kind(recipe_.kinds[var]);
      if (!other) return false;
      replacements.add(var, *other);
    }
    return true;
  }
  void apply(const Replacements& replacements) { replacements.apply(recipe_.root); }

  Outcome walk(Block& block) {
    const size_t outside = visible_.size();
    for (size_t i = 0; i < block.steps.size(); ++i) {
      if (Outcome outcome = edits_of(block, i); outcome != Outcome::kNone) return outcome;
      Step& step = block.steps[i];
      for (Block& inner : step.blocks) {
        const size_t here = visible_.size();
        visible_.insert(visible_.end(), inner.parameters.begin(), inner.parameters.end());
        if (Outcome outcome = walk(inner); outcome != Outcome::kNone) return outcome;
        visible_.resize(here);
      }
      visible_.insert(visible_.end(), step.makes.begin(), step.makes.end());
    }
    visible_.resize(outside);
    return Outcome::kNone;
  }

  Outcome edits_of(Block& block, size_t i) {
    Step& step = block.steps[i];
    if (is_turn()) return drop_step(block, i);
    if (step.form == Form::kWhile) {
      if (is_turn()) return unroll(block, i);
      return loop_edits(step);
    }
    if (step.form == Form::kCase) {
      for (size_t b = 0; b < step.blocks.size(); ++b) {
        if (is_turn()) return inline_branch(block, i, b);
      }
      return case_edits(step);
    }
    return operand_edits(step);
  }

  Outcome drop_step(Block& block, size_t i) {
    Replacements replacements;
    if (!replace(block.steps[i].makes, replacements)) return Outcome::kNoUse;
    block.steps.erase(block.steps.begin() + static_cast<ptrdiff_t>(i));
    apply(replacements);
    return Outcome::kChanged;
  }

  // Puts `steps` in the place of step i.
  void splice(Block& block, size_t i, std::vector<Step> steps, const Replacements& replacements) {
    const auto at = block.steps.erase(block.steps.begin() + static_cast<ptrdiff_t>(i));
    block.steps.insert(at, std::make_move_iterator(steps.begin()),
                       std::make_move_iterator(steps.end()));
    apply(replacements);
  }

  // One round of the loop takes its place: `before`, then `after`.
  Outcome unroll(Block& block, size_t i) {
    Step loop = block.steps[i];
    Block& before = loop.blocks[0];
    Block& after = loop.blocks[1];
    EDDY_CHECK(loop.makes.size() == before.results.size() + loop.num_scans &&
               after.parameters.size() == before.results.size() + 1 &&
               after.results.size() == loop.reads.size() + loop.num_scans &&
               before.parameters.size() == loop.reads.size() + 1)
        << "a loop of " << loop.reads.size() << " values does not fit its blocks";
    const auto iteration = other_of_kind(Kind::kCount);
    if (!iteration) return Outcome::kNoUse;
    Replacements replacements;
    for (size_t f = 0; f < before.results.size(); ++f) {
      replacements.add(loop.makes[f], before.results[f]);
      replacements.add(after.parameters[f + 1], before.results[f]);
    }
    for (size_t s = 0; s < loop.num_scans; ++s) {
      replacements.add(loop.makes[before.results.size() + s], after.results[loop.reads.size() + s]);
      // A row's value may have been forwarded.
      for (size_t f = 0; f < before.results.size(); ++f) {
        replacements.add(after.parameters[f + 1], before.results[f]);
      }
    }
    replacements.add(after.parameters[0], *iteration);
    replacements.add(before.parameters[0], *iteration);
    for (size_t c = 0; c < loop.reads.size(); ++c) {
      replacements.add(before.parameters[c + 1], loop.reads[c]);
    }
    std::vector<Step> steps = std::move(before.steps);
    for (Step& step : after.steps) steps.push_back(std::move(step));
    splice(block, i, std::move(steps), replacements);
    return Outcome::kChanged;
  }

  Outcome inline_branch(Block& block, size_t i, size_t b) {
    Step branch = block.steps[i];
    EDDY_CHECK(b < branch.blocks.size() && branch.blocks[b].results.size() == branch.makes.size())
        << "branch " << b << " does not make what its case does";
    Replacements replacements;
    for (size_t m = 0; m < branch.makes.size(); ++m) {
      replacements.add(branch.makes[m], branch.blocks[b].results[m]);
    }
    splice(block, i, std::move(branch.blocks[b].steps), replacements);
    return Outcome::kChanged;
  }

  template <typename T>
  static void erase_at(std::vector<T>& from, size_t i) {
    EDDY_CHECK(i < from.size()) << "place " << i << " of " << from.size();
    from.erase(from.begin() + static_cast<ptrdiff_t>(i));
  }

  Outcome loop_edits(Step& loop) {
    EDDY_CHECK(loop.blocks.size() == 2) << "half a loop";
    Block& before = loop.blocks[0];
    Block& after = loop.blocks[1];
    Replacements replacements;
    for (size_t c = 0; c < loop.reads.size(); ++c) {
      if (!is_turn()) continue;
      replacements.add(before.parameters[c + 1], loop.reads[c]);
      erase_at(loop.reads, c), erase_at(before.parameters, c + 1), erase_at(after.results, c);
      apply(replacements);
      return Outcome::kChanged;
    }
    for (size_t f = 0; f < before.results.size(); ++f) {
      if (!is_turn()) continue;
      if (!replace({after.parameters[f + 1], loop.makes[f]}, replacements)) return Outcome::kNoUse;
      erase_at(before.results, f), erase_at(after.parameters, f + 1), erase_at(loop.makes, f);
      apply(replacements);
      return Outcome::kChanged;
    }
    for (size_t s = 0; s < loop.num_scans; ++s) {
      if (!is_turn()) continue;
      const size_t make = before.results.size() + s;
      if (!replace({loop.makes[make]}, replacements)) return Outcome::kNoUse;
      erase_at(loop.makes, make), erase_at(after.results, loop.reads.size() + s);
      --loop.num_scans;
      apply(replacements);
      return Outcome::kChanged;
    }
    if (is_turn()) {
      const bool had_limit = !loop.limit.empty();
      loop.limit.clear();
      return changed(had_limit);
    }
    if (is_turn()) return changed(std::exchange(loop.early, 0) != 0);
    return choice_edits(loop);
  }

  Outcome choice_edits(Step& step) {
    for (size_t i = 0; i < step.choices.size(); ++i) {
      if (is_turn()) {
        if (step.choices.size() == 1) return Outcome::kNoUse;
        erase_at(step.choices, i);
        return Outcome::kChanged;
      }
      if (is_turn()) {
        const int64_t less = step.choices[i] > 2 ? 2 : 1;
        return changed(std::exchange(step.choices[i], std::min(less, step.choices[i])) > less);
      }
    }
    return Outcome::kNone;
  }

  Outcome case_edits(Step& step) {
    for (size_t b = 0; b < step.blocks.size(); ++b) {
      if (!is_turn()) continue;
      // A bool selects one of two; others find the next branch, or none, in the place.
      if (step.blocks.size() == 1 || step.selector == ElementType::kBool) return Outcome::kNoUse;
      if (step.default_region < 0 && step.reads.empty()) step.default_region = 0;
      erase_at(step.blocks, b);
      step.default_region =
          std::min(step.default_region, static_cast<int32_t>(step.blocks.size()) - 1);
      return Outcome::kChanged;
    }
    for (size_t m = 0; m < step.makes.size(); ++m) {
      if (!is_turn()) continue;
      Replacements replacements;
      if (!replace({step.makes[m]}, replacements)) return Outcome::kNoUse;
      erase_at(step.makes, m);
      for (Block& block : step.blocks) erase_at(block.results, m);
      if (!step.reads.empty()) erase_at(step.reads, m);
      // Without anything to pass through, an index out of range needs a branch.
      if (step.reads.empty() && step.default_region < 0) step.default_region = 0;
      apply(replacements);
      return Outcome::kChanged;
    }
    return Outcome::kNone;
  }

  Outcome operand_edits(Step& step) {
    const bool is_variadic = step.form == Form::kMix || step.form == Form::kMixInPlace ||
                             step.form == Form::kTwins || step.form == Form::kResize ||
                             step.form == Form::kRow || step.form == Form::kTrips;
    for (size_t r = 1; is_variadic && r < step.reads.size(); ++r) {
      if (!is_turn()) continue;
      erase_at(step.reads, r);
      return Outcome::kChanged;
    }
    return choice_edits(step);
  }

  Outcome root_edits() {
    Block& root = recipe_.root;
    for (size_t r = 0; r < root.results.size(); ++r) {
      if (!is_turn()) continue;
      if (root.results.size() == 1) return Outcome::kNoUse;
      erase_at(root.results, r);
      return Outcome::kChanged;
    }
    for (size_t p = 0; p < root.parameters.size(); ++p) {
      if (!is_turn()) continue;
      if (is_read(root, root.parameters[p])) return Outcome::kNoUse;
      erase_at(root.parameters, p);
      return Outcome::kChanged;
    }
    return Outcome::kNone;
  }

  static bool is_read(const Block& block, Var var) {
    const auto has = [var](const std::vector<Var>& vars) {
      return std::find(vars.begin(), vars.end(), var) != vars.end();
    };
    for (const Step& step : block.steps) {
      if (has(step.reads) || has(step.go_reads) || has(step.limit)) return true;
      for (const Block& inner : step.blocks) {
        if (is_read(inner, var)) return true;
      }
    }
    return has(block.results);
  }

  Recipe& recipe_;
  size_t left_;
  std::vector<Var> visible_;
};

}  // namespace

Shrunk shrink(Recipe recipe, const StillFails& still_fails, const ShrinkOptions& options) {
  Shrunk shrunk{std::move(recipe), 0};
  for (bool has_shrunk = true; has_shrunk;) {
    has_shrunk = false;
    for (size_t n = 0; shrunk.attempts < options.max_attempts;) {
      Recipe smaller = shrunk.recipe;
      const Outcome outcome = Editor(smaller, n).run();
      if (outcome == Outcome::kNone) break;
      const bool fails = outcome == Outcome::kChanged && (++shrunk.attempts, still_fails(smaller));
      if (!fails) {
        ++n;
        continue;
      }
      shrunk.recipe = std::move(smaller);
      has_shrunk = true;  // the n-th edit is another one now
    }
  }
  return shrunk;
}

FailingGraph smallest_failing(const Library& library, Recipe recipe,
                              const StillFails& still_fails_or_empty,
                              const ShrinkOptions& options) {
  if (still_fails_or_empty) {
    recipe = shrink(std::move(recipe), still_fails_or_empty, options).recipe;
  }
  const auto graph = build(recipe, library);
  return graph.is_ok() ? FailingGraph{graph->num_nodes(), print_text(*graph)} : FailingGraph();
}

}  // namespace eddy::check
