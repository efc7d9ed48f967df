#include "tools/check/gradient_program.h"

#include "graph/base/random.h"

namespace eddy::check {
namespace {

const ValueType kScalar = tensor_type(ElementType::kDouble, {});

class Program {
 public:
  Program(GraphBuilder& b, uint64_t seed, const GradientProgramOptions& options)
      : b_(b), random_(seed), options_(options) {}

  void build() {
    Seen seen;
    for (const char* name : {"a", "b", "c"}) seen.scalars.push_back(b_.input(name, kScalar));
    seen.stacks.push_back(b_.input("v", tensor_type(ElementType::kDouble, {kGradientRows})));
    rows_ = seen.stacks[0];
    if (options_.has_sequences) {
      seen.sequences.push_back(b_.op("SequenceConstruct", {seen.scalars[0], seen.scalars[1]}));
    }
    body(seen, options_.depth, 6);
    Value loss = seen.scalars.back();
    for (size_t i = seen.scalars.size() - 4; i + 1 < seen.scalars.size(); ++i) {
      loss = b_.op("Add", {loss, seen.scalars[i]});
    }
    for (const Value stack : seen.stacks) loss = b_.op("Add", {loss, sum(stack)});
    for (const Value sequence : seen.sequences) loss = b_.op("Add", {loss, sum(joined(sequence))});
    b_.output("loss", loss);
  }

 private:
  struct Seen {
    std::vector<Value> scalars, stacks, sequences;
  };

  int64_t below(int64_t end) {
    return static_cast<int64_t>(random_.below(static_cast<uint64_t>(end)));
  }
  bool happens(double probability) { return random_.uniform() < probability; }
  Value pick(const std::vector<Value>& from) {
    return from[static_cast<size_t>(below(std::ssize(from)))];
  }
  std::vector<Value> several(const std::vector<Value>& from, int64_t count) {
    std::vector<Value> chosen;
    for (int64_t i = 0; i < count; ++i) chosen.push_back(pick(from));
    return chosen;
  }
  Value sum(Value stack) {
    return b_.op("Tanh", {b_.op("ReduceSum", {stack}, {{"keepdims", int64_t{0}}})});
  }
  Value joined(Value sequence) {
    return b_.op("ConcatFromSequence", {sequence},
                 {{"axis", int64_t{0}}, {"new_axis", int64_t{1}}});
  }

  void body(Seen& seen, int depth, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      const double kind = random_.uniform();
      if (depth > 0 && kind < 0.25) {
        loop(seen, depth - 1);
      } else if (depth > 0 && options_.has_branches && kind < 0.45) {
        branch(seen, depth - 1);
      } else if (!seen.sequences.empty() && kind > 0.85) {
        edit(seen);
      } else {
        seen.scalars.push_back(scalar(seen));
      }
    }
  }

  Value scalar(const Seen& seen) {
    if (happens(0.15)) return sum(pick(seen.stacks));
    switch (below(options_.has_waves ? 6 : 3)) {
      case 0:
        return b_.op("Add", {pick(seen.scalars), pick(seen.scalars)});
      case 1:
        return b_.op("Tanh", {b_.op("Mul", {pick(seen.scalars), pick(seen.scalars)})});
      case 2:
        return b_.op("Mul", {pick(seen.scalars), b_.scalar(random_.uniform() - 0.5)});
      case 3:
        return b_.op("Sin", {pick(seen.scalars)});
      case 4:
        return b_.op("Tanh", {pick(seen.scalars)});
      default:
        return b_.op("Cos", {b_.op("Sub", {pick(seen.scalars), pick(seen.scalars)})});
    }
  }

  // Sequences have at least one element.
  void edit(Seen& seen) {
    const Value s = pick(seen.sequences);
    const Value place = b_.scalar(below(2) - 1);
    const int64_t kind = below(3);
    if (kind == 0) {
      seen.sequences.push_back(b_.op("SequenceInsert", {s, pick(seen.scalars), place}));
    } else if (kind == 1) {
      const Value longer = b_.op("SequenceInsert", {s, b_.op("Tanh", {pick(seen.scalars)})});
      seen.sequences.push_back(b_.op("SequenceErase", {longer, place}));
    } else {
      seen.scalars.push_back(b_.op("Tanh", {b_.op("SequenceAt", {s, place})}));
    }
  }

  void loop(Seen& seen, int depth) {
    const int64_t num_carried = 1 + below(3), num_forwarded = 1 + below(3), num_rows = below(3);
    const bool counts = happens(0.5), reads_row = happens(0.3);
    const bool has_sequence = !seen.sequences.empty() && happens(0.3);
    const int64_t limit = below(5), trips = below(5);
    const double threshold = random_.uniform() * 1.6 - 0.8;
    WhileOptions options;
    options.initial = several(seen.scalars, num_carried);
    if (has_sequence) options.initial.push_back(pick(seen.sequences));
    if (!counts || happens(0.4)) options.trip_limit = b_.scalar(limit);
    options.num_scan_outputs = static_cast<uint32_t>(num_rows);
    const int before_depth = happens(0.6) ? depth : 0, after_depth = happens(0.6) ? depth : 0;
    const auto inside = [&](ValueSpan given) {
      Seen inner = seen;
      for (const Value value : given) {
        (b_.type(value).is_sequence() ? inner.sequences : inner.scalars).push_back(value);
      }
      return inner;
    };
    const auto results = [&](const Seen& inner, int64_t num_scalars) {
      std::vector<Value> made = several(inner.scalars, num_scalars);
      if (has_sequence) made.push_back(inner.sequences.back());
      return made;
    };
    const auto made = b_.while_loop(
        options,
        [&](Value iteration, ValueSpan carried) {
          Seen inner = inside(carried);
          body(inner, before_depth, below(4));
          const Value go = counts ? b_.op("Less", {iteration, b_.scalar(trips)})
                                  : b_.op("Less", {pick(inner.scalars), b_.scalar(threshold)});
          return WhileTest{go, results(inner, num_forwarded)};
        },
        [&](Value iteration, ValueSpan forwarded) {
          Seen inner = inside(forwarded);
          if (reads_row) {
            const Value place = b_.op("Mod", {iteration, b_.scalar(kGradientRows)});
            inner.scalars.push_back(b_.op("Gather", {rows_, place}));
          }
          body(inner, after_depth, below(5));
          std::vector<Value> next = results(inner, num_carried);
          for (int64_t s = 0; s < num_rows; ++s) next.push_back(pick(inner.scalars));
          return next;
        });
    if (!b_.status().is_ok()) return;
    const size_t num_scalars = static_cast<size_t>(num_forwarded);
    seen.scalars.insert(seen.scalars.end(), made.begin(), made.begin() + num_forwarded);
    if (has_sequence) seen.sequences.push_back(made[num_scalars]);
    for (size_t s = num_scalars + has_sequence; s < made.size(); ++s) {
      seen.stacks.push_back(made[s]);
    }
  }

  void branch(Seen& seen, int depth) {
    const int64_t num_branches = 1 + below(3), num_outputs = 1 + below(2);
    const bool has_sequence = !seen.sequences.empty() && happens(0.3);
    const Value scaled =
        b_.op("Floor", {b_.op("Mul", {b_.op("Abs", {pick(seen.scalars)}), b_.scalar(7.0)})});
    const Value wide = b_.cast(scaled, ElementType::kInt64);
    const Value turned = b_.op("Mod", {wide, b_.scalar(num_branches + 2)});
    CaseOptions options;
    options.selector = b_.op("Sub", {turned, b_.scalar(int64_t{1})});
    const auto results = [&](const Seen& inner) {
      std::vector<Value> made = several(inner.scalars, num_outputs);
      if (has_sequence) made.push_back(inner.sequences.back());
      return made;
    };
    if (happens(0.5)) {
      options.pass_through = results(seen);
    } else {
      options.default_region = static_cast<int>(below(num_branches));
    }
    std::vector<CaseBody> bodies;
    for (int64_t i = 0; i < num_branches; ++i) {
      bodies.push_back([&] {
        Seen inner = seen;
        body(inner, depth, below(4));
        return results(inner);
      });
    }
    const auto made = b_.case_of(options, bodies);
    if (!b_.status().is_ok()) return;
    seen.scalars.insert(seen.scalars.end(), made.begin(), made.begin() + num_outputs);
    if (has_sequence) seen.sequences.push_back(made.back());
  }

  GraphBuilder& b_;
  Random random_;
  const GradientProgramOptions options_;
  Value rows_;
};

}  // namespace

void add_gradient_program(GraphBuilder& b, uint64_t seed, const GradientProgramOptions& options) {
  Program(b, seed, options).build();
}

}  // namespace eddy::check
