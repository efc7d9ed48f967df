#include "examples/speech_to_text/moonshine.h"

#include <algorithm>

#include "graph/io/import.h"
#include "graph/ir/builder.h"

namespace eddy::speech {
namespace {

constexpr int64_t kLayers = 6;

using Values = std::vector<Value>;
using Named = std::vector<NamedValue>;

// The outputs of a file that was imported.
struct Imported {
  const std::string& path;
  Named outputs;

  Value find(GraphBuilder& b, const std::string& name) const {
    const auto found = std::ranges::find(outputs, name, &NamedValue::name);
    if (found != outputs.end()) return found->value;
    b.fail(invalid_argument(path + ": the model has no output '" + name +
                            "': it is no Moonshine tiny"));
    return {};
  }
  Values find_caches(GraphBuilder& b, const std::string& side) const {
    Values caches;
    for (const std::string& name : cache_names(side)) caches.push_back(find(b, "present." + name));
    return caches;
  }
};

Imported import_file(GraphBuilder& b, const OpTable& ops, const std::string& path,
                     const Named& inputs) {
  Result<Named> outputs = import_onnx_into(b, path, ops, inputs);
  return {path, outputs.is_ok() ? std::move(*outputs) : Named()};  // the builder keeps why not
}

// The loop's carried values.
struct Carried {
  Value token;     // int64[1, 1]
  Values decoder;  // keys and values of the tokens so far
  Values encoder;  // keys and values of the sound

  static Carried of(ValueSpan values) {
    const auto caches = values.subspan(1);
    const size_t half = caches.size() / 2;
    return {
        values[0], {caches.begin(), caches.begin() + half}, {caches.begin() + half, caches.end()}};
  }
  Values flat() const {
    Values all = {token};
    all.insert(all.end(), decoder.begin(), decoder.end());
    all.insert(all.end(), encoder.begin(), encoder.end());
    return all;
  }
};

Carried before_first_step(GraphBuilder& b) {
  const Value none = b.op("ConstantOfShape", {b.int64s({1, kHeads, 0, kHeadSize})});
  const Values caches(2 * kLayers, none);
  const Value start = b.op("Reshape", {b.scalar(kStartOfText), b.int64s({1, 1})});
  return {start, caches, caches};
}

// One token further.
Carried decode(GraphBuilder& b, const OpTable& ops, const std::string& path, Value sound,
               Value has_caches, const Carried& last) {
  Named inputs = {{"input_ids", last.token},
                  {"encoder_hidden_states", sound},
                  {"use_cache_branch", has_caches}};
  const auto give = [&](const std::string& side, const Values& caches) {
    const auto names = cache_names(side);
    for (size_t i = 0; i < names.size(); ++i) {
      inputs.push_back({"past_key_values." + names[i], caches[i]});
    }
  };
  give("decoder", last.decoder);
  give("encoder", last.encoder);
  const Imported decoded = import_file(b, ops, path, inputs);
  Carried next;
  next.token = b.op("ArgMax", {decoded.find(b, "logits")}, {{"axis", -1}, {"keepdims", 0}});
  next.decoder = decoded.find_caches(b, "decoder");
  next.encoder = b.if_else(
      has_caches, [&] { return last.encoder; }, [&] { return decoded.find_caches(b, "encoder"); },
      "keep_encoder_caches");
  return next;
}

}  // namespace

std::vector<std::string> cache_names(const std::string& side) {
  std::vector<std::string> names;
  for (int64_t layer = 0; layer < kLayers; ++layer) {
    for (const char* part : {"key", "value"}) {
      names.push_back(std::to_string(layer) + "." + side + "." + part);
    }
  }
  return names;
}

Result<Graph> build_moonshine(const OpTable& ops, const MoonshineFiles& files) {
  GraphBuilder b(ops, "speech_to_text");
  const Value samples =
      b.input("samples", tensor_type(ElementType::kFloat, {1, b.symbol("samples")}));
  const Value token_limit = b.input("token_limit", tensor_type(ElementType::kInt64, {}));
  const Imported encoded = import_file(b, ops, files.encoder, {{"input_values", samples}});
  const Value sound = encoded.find(b, "last_hidden_state");

  const Carried start = before_first_step(b);
  const auto results = b.while_loop(
      {.name = "decode", .initial = start.flat(), .trip_limit = token_limit, .num_scan_outputs = 1},
      [&](Value, ValueSpan carried) {
        const Value is_end = b.op("Equal", {carried[0], b.scalar(kEndOfText)});
        return WhileTest{b.op("Not", {is_end}), {carried.begin(), carried.end()}};
      },
      [&](Value iteration, ValueSpan forwarded) {
        const Value has_caches =
            b.op("Reshape", {b.op("Greater", {iteration, b.scalar<int64_t>(0)}), b.int64s({1})});
        const Carried next =
            decode(b, ops, files.decoder, sound, has_caches, Carried::of(forwarded));
        Values values = next.flat();
        values.push_back(next.token);  // a row of the stack
        return values;
      });
  EDDY_RETURN_IF_ERROR(b.status());
  b.output("tokens", b.op("Reshape", {results.back(), b.int64s({-1})}));
  return b.finish();
}

}  // namespace eddy::speech
