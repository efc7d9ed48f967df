#include "examples/dynamic_models/seq2seq.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "examples/dynamic_models/parts.h"

namespace eddy::dynamic {
namespace {

constexpr int64_t kStop = 0;
constexpr float kWins = 1e4f;  // beats every score

struct Seq2seq {
  Seq2seqSize size;
  Array embedding;                           // [vocabulary, hidden]
  Array read, read_bias, write, write_bias;  // LSTM cells
  Array output;                              // [hidden, vocabulary]
  std::vector<int64_t> source;
};

Seq2seq draw(const Seq2seqSize& size) {
  Random random(size.seed);
  const int64_t hidden = size.hidden;
  const float range = 2 / std::sqrt(static_cast<float>(hidden));
  Seq2seq model{size,
                random_array(random, {size.vocabulary, hidden}, 2),
                random_array(random, {2 * hidden, 4 * hidden}, range),
                random_array(random, {4 * hidden}, range),
                random_array(random, {2 * hidden, 4 * hidden}, range),
                random_array(random, {4 * hidden}, range),
                random_array(random, {hidden, size.vocabulary}, 1),
                {}};
  // Stopping is up to `stop_at`.
  for (int64_t i = 0; i < hidden; ++i) model.output.at(i, kStop) = 0;
  for (int64_t i = 0; i < size.length * size.batch; ++i) {
    const uint64_t others = static_cast<uint64_t>(size.vocabulary - 1);
    model.source.push_back(1 + static_cast<int64_t>(random.below(others)));
  }
  return model;
}

// The scores' own help for the stop token: [1, vocabulary].
Array stop_bonus(const Seq2seq& model) {
  Array bonus = zeros({1, model.size.vocabulary});
  bonus.values[kStop] = kWins;
  return bonus;
}

LstmState build_reader(GraphBuilder& b, const Seq2seq& model, Value source, Value embedding) {
  const Value read = weight(b, model.read, "read");
  const Value bias = weight(b, model.read_bias, "read_bias");
  const Value zero = weight(b, zeros({model.size.batch, model.size.hidden}), "zero");
  const Values state = for_loop(b, "read", b.scalar(model.size.length), {zero, zero}, 0,
                                [&](Value iteration, ValueSpan carried) {
                                  const Value x = row(b, embedding, row(b, source, iteration));
                                  const LstmState next = lstm_step(b, x, {carried[0], carried[1]},
                                                                   read, bias, model.size.hidden);
                                  return Values{next.h, next.c};
                                });
  return state.size() == 2 ? LstmState{state[0], state[1]} : LstmState{};
}

Result<Graph> build(const Seq2seq& model, const OpTable& ops) {
  const Seq2seqSize& size = model.size;
  GraphBuilder b(ops, "seq2seq");
  const Value source =
      b.input("source", tensor_type(ElementType::kInt64, {size.length, size.batch}));
  const Value limit = b.input("limit", tensor_type(ElementType::kInt64, {}));
  const Value stop_at = b.input("stop_at", tensor_type(ElementType::kInt64, {}));
  const Value embedding = weight(b, model.embedding, "embedding");
  const LstmState read = build_reader(b, model, source, embedding);
  const Value write = weight(b, model.write, "write");
  const Value bias = weight(b, model.write_bias, "write_bias");
  const Value output = weight(b, model.output, "output");
  const Value bonus = weight(b, stop_bonus(model), "bonus");
  const Value last = b.op("Sub", {stop_at, b.scalar<int64_t>(1)});
  const std::vector<int64_t> starts(static_cast<size_t>(size.batch), 1);
  const Value stop = b.scalar(kStop);
  const Values results = while_true(
      b, "write", limit, {b.vector(std::span(starts)), read.h, read.c}, 1,
      [&](Value iteration, ValueSpan carried) {
        const LstmState next = lstm_step(b, row(b, embedding, carried[0]), {carried[1], carried[2]},
                                         write, bias, size.hidden);
        const Value is_late = b.op("GreaterOrEqual", {iteration, last});
        const Value help = b.op("Mul", {bonus, b.cast(is_late, ElementType::kFloat)});
        const Value scores = b.op("Add", {b.op("MatMul", {next.h, output}), help});
        const Value best = b.op("ArgMax", {scores}, {{"axis", 1}, {"keepdims", 0}});
        const Value had_stopped = b.op("Equal", {carried[0], stop});
        const Value token = b.op("Where", {had_stopped, stop, best});
        const Value all_stopped = all_of(b, b.op("Equal", {token, stop}));
        return Values{b.op("Not", {all_stopped}), token, next.h, next.c, token};
      });
  if (results.empty()) return b.finish();
  b.output("tokens", results[3]);
  b.output("h", results[1]);
  return b.finish();
}

Array embed(const Seq2seq& model, const int64_t* tokens) {
  Array rows;
  for (int64_t r = 0; r < model.size.batch; ++r) push_row(rows, row(model.embedding, tokens[r]));
  return rows;
}

PlainResult run_plainly(const Seq2seq& model) {
  const Seq2seqSize& size = model.size;
  const Array zero = zeros({size.batch, size.hidden});
  PlainLstmState state{zero, zero};
  for (int64_t i = 0; i < size.length; ++i) {
    state = lstm_step(embed(model, &model.source[static_cast<size_t>(i * size.batch)]), state,
                      model.read, model.read_bias);
  }
  std::vector<int64_t> tokens(static_cast<size_t>(size.batch), 1);
  std::vector<int64_t> written;
  int64_t steps = 0;
  for (bool is_going = true; is_going && steps < size.limit; ++steps) {
    state = lstm_step(embed(model, tokens.data()), state, model.write, model.write_bias);
    const Array scores = multiply(state.h, model.output);
    for (size_t r = 0; r < tokens.size(); ++r) {
      const bool stops = tokens[r] == kStop || steps >= size.stop_at - 1;
      tokens[r] = stops ? kStop : argmax(scores, static_cast<int64_t>(r));
    }
    written.insert(written.end(), tokens.begin(), tokens.end());
    is_going = std::ranges::any_of(tokens, [](int64_t token) { return token != kStop; });
  }
  return {{to_value({steps, size.batch}, written), to_value(state.h)}, steps};
}

}  // namespace

Model make_seq2seq(const Seq2seqSize& size) {
  const auto model = std::make_shared<const Seq2seq>(draw(size));
  return {"seq2seq",
          "LSTM " + std::to_string(size.hidden) + ", vocabulary " +
              std::to_string(size.vocabulary) + ", stops at " + std::to_string(size.stop_at),
          size.batch,
          "write",
          {{"source", to_value({size.length, size.batch}, model->source)},
           {"limit", to_value({}, {size.limit})},
           {"stop_at", to_value({}, {size.stop_at})}},
          [model](const OpTable& ops) { return build(*model, ops); },
          [model] { return run_plainly(*model); }};
}

}  // namespace eddy::dynamic
