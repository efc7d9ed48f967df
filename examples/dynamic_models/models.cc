#include "examples/dynamic_models/adaptive_time.h"
#include "examples/dynamic_models/attention.h"
#include "examples/dynamic_models/beam_search.h"
#include "examples/dynamic_models/blockdrop.h"
#include "examples/dynamic_models/early_exit.h"
#include "examples/dynamic_models/fixed_point.h"
#include "examples/dynamic_models/language_model.h"
#include "examples/dynamic_models/lstm.h"
#include "examples/dynamic_models/model.h"
#include "examples/dynamic_models/nas_rnn.h"
#include "examples/dynamic_models/seq2seq.h"
#include "examples/dynamic_models/skipnet.h"
#include "examples/dynamic_models/tree.h"

namespace eddy::dynamic {
namespace {

void add_small(std::vector<Recipe>& recipes, int64_t batch) {
  recipes.push_back(
      {"lstm", [=] { return make_lstm({.layers = 2, .steps = 5, .hidden = 8, .batch = batch}); }});
  recipes.push_back(
      {"nas_rnn", [=] { return make_nas_rnn({.steps = 20, .hidden = 8, .batch = batch}); }});
  recipes.push_back({"attention", [=] {
                       return make_attention({.heads = 2, .width = 4, .steps = 6, .batch = batch});
                     }});
  Seq2seqSize words{.hidden = 8, .vocabulary = 30, .length = 3, .limit = 12, .batch = batch};
  for (const int64_t stop_at : {3, 12, 40}) {  // before, at and beyond the limit
    words.stop_at = stop_at;
    recipes.push_back({"seq2seq", [=] { return make_seq2seq(words); }});
  }
  BlockDropSize blocks{.blocks_per_stage = 2, .channels = 4, .image = 8, .batch = batch};
  for (const int64_t open : {0, 3, 6}) {
    blocks.open = open;
    recipes.push_back({"blockdrop", [=] { return make_blockdrop(blocks); }});
  }
  recipes.push_back({"adaptive_time", [=] {
                       return make_adaptive_time({.steps = 5, .hidden = 8, .batch = batch});
                     }});
  recipes.push_back({"adaptive_time", [=] {
                       return make_adaptive_time(
                           {.steps = 3, .hidden = 8, .patience = 2, .batch = batch});
                     }});
  recipes.push_back(
      {"fixed_point", [=] { return make_fixed_point({.hidden = 8, .batch = batch}); }});
  recipes.push_back(
      {"fixed_point", [=] { return make_fixed_point({.hidden = 8, .limit = 3, .batch = batch}); }});
  EarlyExitSize exits{.stages = 4, .channels = 4, .image = 8, .batch = batch};
  for (const float threshold : {0.0f, 0.4f, 2.0f}) {  // at once, somewhere, never
    exits.threshold = threshold;
    recipes.push_back({"early_exit", [=] { return make_early_exit(exits); }});
  }
  for (const int64_t leaves : {1, 9}) {
    recipes.push_back(
        {"tree", [=] { return make_tree({.leaves = leaves, .hidden = 8, .batch = batch}); }});
  }
  SkipNetSize skips{.blocks = {2, 3}, .width = 2, .image = 16, .classes = 10, .batch = batch};
  for (const uint64_t seed : {1, 3, 4, 10}) {
    skips.seed = seed;
    recipes.push_back({"skipnet", [=] { return make_skipnet(skips); }});
  }
  BeamSearchSize beams{.hidden = 8, .vocabulary = 20, .beams = 3, .limit = 20, .batch = batch};
  for (const float eagerness : {0.0f, 0.5f, 9.0f}) {
    beams.eagerness = eagerness;
    recipes.push_back({"beam_search", [=] { return make_beam_search(beams); }});
  }
  LanguageModelSize writer{.heads = 4,
                             .shared = 2,
                             .width = 4,
                             .inner = 12,
                             .vocabulary = 20,
                             .words = 3,
                             .limit = 12,
                             .batch = batch};
  for (const float eagerness : {0.0f, 0.5f, 50.0f}) {
    writer.eagerness = eagerness;
    recipes.push_back({"language_model", [=] { return make_language_model(writer); }});
  }
}

void add_full(std::vector<Recipe>& recipes, int64_t batch) {
  recipes.push_back({"lstm", [=] { return make_lstm({.batch = batch}); }});
  recipes.push_back({"nas_rnn", [=] { return make_nas_rnn({.batch = batch}); }});
  recipes.push_back({"attention", [=] { return make_attention({.batch = batch}); }});
  recipes.push_back({"seq2seq", [=] { return make_seq2seq({.stop_at = 10, .batch = batch}); }});
  recipes.push_back({"seq2seq", [=] { return make_seq2seq({.stop_at = 40, .batch = batch}); }});
  recipes.push_back({"blockdrop", [=] { return make_blockdrop({.batch = batch}); }});
  recipes.push_back({"adaptive_time", [=] { return make_adaptive_time({.batch = batch}); }});
  recipes.push_back({"fixed_point", [=] { return make_fixed_point({.batch = batch}); }});
  recipes.push_back({"early_exit", [=] { return make_early_exit({.batch = batch}); }});
  recipes.push_back({"tree", [=] { return make_tree({.batch = batch}); }});
  recipes.push_back({"skipnet", [=] { return make_skipnet({.batch = batch}); }});
  recipes.push_back({"beam_search", [=] { return make_beam_search({.batch = batch}); }});
  recipes.push_back({"language_model", [=] { return make_language_model({.batch = batch}); }});
}

}  // namespace

std::vector<Recipe> all_models(Scale scale) {
  std::vector<Recipe> recipes;
  if (scale == Scale::kSmall) {
    for (const int64_t batch : {1, 3}) add_small(recipes, batch);
  } else {
    for (const int64_t batch : {1, 64}) add_full(recipes, batch);
  }
  return recipes;
}

}  // namespace eddy::dynamic
