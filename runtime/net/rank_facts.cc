#include "runtime/net/rank_facts.h"

#include <set>
#include <utility>

#include "graph/proof/rank_proof.h"
#include "graph/ranks/skeleton.h"
#include "runtime/net/byte_stream.h"

namespace eddy {
namespace {

struct Compared {
  std::string RankFacts::*field;
  const char* has;  // "rank 1 has …"
  const char* advice;
};
constexpr Compared kCompared[] = {
    {&RankFacts::version, "another version of Eddy", "start the same program on all ranks"},
    {&RankFacts::carrier, "another carrier", "load the same libraries on all ranks"},
    {&RankFacts::options, "other options", "make the session with the same options on all ranks"},
    {&RankFacts::graph, "another graph",
     "give all ranks the same model, or say that graphs differ (RankOptions::is_one_graph)"},
    {&RankFacts::processor, "another processor or other libraries",
     "values that are computed alike would differ in bits; use processors of one kind"},
};

}  // namespace

std::string write_facts(const RankFacts& facts) {
  ByteWriter out;
  for (const Compared& each : kCompared) out.text(facts.*each.field);
  const std::vector<std::byte> skeleton = write_skeleton(facts.skeleton);
  out.text({reinterpret_cast<const char*>(skeleton.data()), skeleton.size()});
  const std::vector<std::byte> bytes = out.take();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

Result<RankFacts> read_facts(std::string_view bytes) {
  ByteReader in(std::as_bytes(std::span(bytes)));
  RankFacts facts;
  for (const Compared& each : kCompared) facts.*each.field = in.text();
  const std::string skeleton = in.text();
  if (!in.is_good() || !in.is_at_end()) {
    return invalid_argument("it says what this version of Eddy cannot read");
  }
  EDDY_ASSIGN_OR_RETURN(facts.skeleton, read_skeleton(std::as_bytes(std::span(skeleton))));
  return facts;
}

Status compare_facts(std::span<const RankFacts> facts) {
  for (const Compared& each : kCompared) {
    for (size_t r = 1; r < facts.size(); ++r) {
      const std::string &own = facts[0].*each.field, &other = facts[r].*each.field;
      if (own == other) continue;
      return invalid_argument("rank " + std::to_string(r) + " has " + each.has + " than rank 0 (" +
                              other + ", and not " + own + "); " + each.advice);
    }
  }
  std::vector<RankSkeleton> skeletons;
  for (const RankFacts& each : facts) skeletons.push_back(each.skeleton);
  const RankProof proof = prove_ranks(skeletons);
  if (proof.is_safe()) return Status::ok();
  return invalid_argument("the ranks' communication is unsafe: " + proof.violations[0]);
}

std::vector<RankSkeleton::Channel> all_channels(std::span<const RankFacts> facts) {
  std::set<RankSkeleton::Channel> channels;
  for (const RankFacts& each : facts) {
    channels.insert(each.skeleton.channels.begin(), each.skeleton.channels.end());
  }
  return {channels.begin(), channels.end()};
}

}  // namespace eddy
