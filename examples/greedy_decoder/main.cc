// greedy_decoder [SEED]: decodes with random weights, and checks Eddy's tokens against plain loops.
// greedy_decoder --plan FILE.svg: draws the plan instead.
//
// Exit codes: 0; 1 the tokens differ; 2 usage; 4 the run failed.
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstring>

#include "examples/draw_plan.h"
#include "examples/greedy_decoder/decoder.h"
#include "examples/report.h"
#include "runtime/api/session.h"

namespace eddy::decoder {
namespace {

constexpr int64_t kVocabulary = 32;
constexpr int64_t kHidden = 64;
constexpr int64_t kFirst = 1;
constexpr int64_t kLimit = 100;

// Each token when it is made, while the loop goes on to the next.
Result<std::vector<int64_t>> print_tokens(Session& session, const NamedTensors& inputs) {
  const auto stream = std::make_shared<OutputStream>(/*max_waiting=*/8);
  RunHandle run = session.run_async(inputs, {}, {.streams = {{"tokens", stream}}});
  std::vector<int64_t> tokens;
  while (const std::optional<Tensor> token = stream->next()) {
    tokens.push_back(token->values<int64_t>()[0]);
    std::printf(" %lld", static_cast<long long>(tokens.back()));
    std::fflush(stdout);
  }
  EDDY_RETURN_IF_ERROR(run.wait());
  return tokens;
}

Status run(uint64_t seed, bool& is_right) {
  const Weights weights = make_weights(seed, kVocabulary, kHidden);
  Library library;
  EDDY_ASSIGN_OR_RETURN(Graph graph, build_decoder(library.ops(), weights));
  EDDY_ASSIGN_OR_RETURN(auto session, Session::create(library, std::move(graph), {}));
  const NamedTensors inputs = {{"first", Tensor::of<int64_t>({1}, {kFirst})},
                               {"limit", Tensor::scalar(kLimit)}};
  EDDY_ASSIGN_OR_RETURN(NamedTensors outputs, session->run(inputs));  // warms up
  const auto start = std::chrono::steady_clock::now();
  EDDY_ASSIGN_OR_RETURN(outputs, session->run(inputs));
  const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - start;
  std::printf("seed %llu:", static_cast<unsigned long long>(seed));
  EDDY_ASSIGN_OR_RETURN(const std::vector<int64_t> printed, print_tokens(*session, inputs));

  const auto values = outputs[0].second.values<int64_t>();
  const std::vector<int64_t> tokens(values.begin(), values.end());
  if (printed != tokens) return run_failed("the tokens as they came are not the output");
  const bool has_stopped = static_cast<int64_t>(tokens.size()) < kLimit;
  std::printf("\n%zu tokens, ended by the %s; %.1f us per step\n", tokens.size(),
              has_stopped ? "stop token" : "limit",
              took.count() / static_cast<double>(tokens.size() + has_stopped));
  is_right = tokens == decode_plainly(weights, kFirst, kLimit);
  std::printf("plain loops give %s\n", is_right ? "the same tokens" : "other tokens");
  return Status::ok();
}

Status draw(const std::string& path) {
  Library library;
  EDDY_ASSIGN_OR_RETURN(Graph graph,
                        build_decoder(library.ops(), make_weights(1, kVocabulary, kHidden)));
  // Left to itself, Eddy keeps nodes as small as these on one stream.
  const SessionOptions options{.num_threads = 2, .assignment = Assignment::kRank};
  EDDY_ASSIGN_OR_RETURN(auto session, Session::create(library, std::move(graph), options));
  return write_plan(*session, "greedy decoder: a loop on two streams, left in its middle", path);
}

}  // namespace
}  // namespace eddy::decoder

int main(int argc, char** argv) {
  if (argc == 3 && std::strcmp(argv[1], "--plan") == 0) {
    return eddy::report(eddy::decoder::draw(argv[2]));
  }
  uint64_t seed = 28;
  const char* end = argc == 2 ? argv[1] + std::strlen(argv[1]) : nullptr;
  if (argc > 2 || (argc == 2 && std::from_chars(argv[1], end, seed).ptr != end)) {
    std::fprintf(stderr, "usage: greedy_decoder [SEED] | --plan FILE.svg\n");
    return 2;
  }
  bool is_right = false;
  const eddy::Status status = eddy::decoder::run(seed, is_right);
  return status.is_ok() ? (is_right ? 0 : 1) : eddy::report(status);
}
