#include "tests/graph/schedule/streams/all_assignments.h"

#include <algorithm>

namespace eddy::testing {

AllAssignments::AllAssignments(const Dag& dag, const Devices& devices)
    : reduced_(model_reduction(dag)), reach_(model_reachability(dag)) {
  for (uint32_t node = 0; node < devices.size(); ++node) {
    first_.push_back(places_.size());
    for (const uint32_t device : devices[node]) places_.push_back({node, device, 0});
  }
  first_.push_back(places_.size());
  place(0, 0);
}

void AllAssignments::place(size_t next, uint32_t num_streams) {
  if (next == places_.size()) return score(num_streams);
  for (uint32_t stream = 0; stream <= num_streams; ++stream) {
    if (!fits(next, stream)) continue;
    places_[next].stream = stream;
    place(next + 1, std::max(num_streams, stream + 1));
  }
}

bool AllAssignments::fits(size_t next, uint32_t stream) const {
  for (size_t other = 0; other < next; ++other) {
    const uint32_t a = places_[other].node;
    const uint32_t b = places_[next].node;
    if (places_[other].stream != stream) continue;
    if (places_[other].device != places_[next].device) return false;
    if (!reach_[a][b] && !reach_[b][a]) return false;
  }
  return true;
}

bool AllAssignments::share_a_stream(const Edge& edge) const {
  for (size_t from = first_[edge.from]; from < first_[edge.from + 1]; ++from) {
    for (size_t to = first_[edge.to]; to < first_[edge.to + 1]; ++to) {
      if (places_[from].stream == places_[to].stream) return true;
    }
  }
  return false;
}

void AllAssignments::score(uint32_t num_streams) {
  uint32_t waits = 0;
  for (const Edge& edge : reduced_) waits += share_a_stream(edge) ? 0 : 1;
  if (std::pair(waits, num_streams) < std::pair(waits_, streams_)) {
    waits_ = waits;
    streams_ = num_streams;
  }
  waits_with_boundary_ = std::min(waits_with_boundary_, waits + boundary_waits(num_streams));
}

uint32_t AllAssignments::boundary_waits(uint32_t num_streams) const {
  std::vector<uint32_t> of_stream(num_streams + size_t{1}, 0);
  uint32_t all = 0;
  for (const Place& place : places_) {
    const bool is_source =
        std::ranges::none_of(reduced_, [&](const Edge& edge) { return edge.to == place.node; });
    const bool is_sink =
        std::ranges::none_of(reduced_, [&](const Edge& edge) { return edge.from == place.node; });
    const uint32_t waits = (is_source ? 1 : 0) + (is_sink ? 1 : 0);
    of_stream[place.stream] += waits;
    all += waits;
  }
  return all - *std::ranges::max_element(of_stream);
}

}  // namespace eddy::testing
