#include "sim/profile.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <unordered_map>

#include "base/hash.h"

namespace cachalot::sim {
namespace {

// What is known of the requests of one kind.
struct Kind {
  Divergence divergence;
  std::map<Change, uint64_t> lost;  // by what was the matter
  std::vector<uint64_t> changed;    // lengths of what differs, of those that are edited
  std::set<uint64_t> values;        // hashes of it
};

void Add(const Overlap& overlap, size_t index, uint64_t prompt_tokens, Kind* kind) {
  const RequestOverlap& request = overlap.requests[index];
  Divergence& divergence = kind->divergence;
  divergence.position = request.cut;
  divergence.tokens_behind += prompt_tokens - request.cut;
  ++divergence.requests;
  const uint64_t lost = request.lost_tokens();
  divergence.lost_tokens += lost;
  kind->lost[request.change] += lost;
  if (request.change != Change::kEdited) return;
  const uint64_t changed = request.alike_again() - request.cut;
  kind->changed.push_back(changed);
  kind->values.insert(Hash64(std::as_bytes(std::span(overlap.words[index]).subspan(request.cut, changed))));
}

Divergence Finish(Kind kind) {
  Divergence divergence = kind.divergence;
  for (const auto& [change, lost] : kind.lost) {
    if (lost > 0 && lost >= kind.lost[divergence.change]) divergence.change = change;
  }
  divergence.changed_tokens = SpreadOf(kind.changed).p50;
  divergence.values = kind.values.size();
  return divergence;
}

std::vector<Divergence> DivergencesOf(const Trace& trace, const Overlap& overlap) {
  std::vector<Kind> kinds(overlap.kinds);
  for (size_t i = 0; i < overlap.requests.size(); ++i) {
    const RequestOverlap& request = overlap.requests[i];
    const bool only_goes_on = request.goes_on && request.runs.empty();
    if (i == 0 || only_goes_on || request.cut == trace.requests[i].input_tokens) continue;
    Add(overlap, i, trace.requests[i].input_tokens, &kinds[request.kind]);
  }
  std::vector<Divergence> divergences;
  for (Kind& kind : kinds) {
    if (kind.divergence.requests >= 2) divergences.push_back(Finish(std::move(kind)));
  }
  std::ranges::stable_sort(divergences, std::greater(),
                           [](const Divergence& d) { return std::tuple(d.lost_tokens, d.requests, d.position); });
  divergences.resize(std::min(divergences.size(), kMostDivergences));
  return divergences;
}

std::vector<Return> ReturnsOf(const Trace& trace, const Overlap& overlap) {
  std::vector<Return> returns;
  std::unordered_map<uint64_t, uint32_t> last_of;  // by session
  for (uint32_t i = 0; i < trace.requests.size(); ++i) {
    const uint64_t session = trace.requests[i].session;
    if (session == 0) {
      if (overlap.requests[i].goes_on) returns.push_back({overlap.requests[i].match.with, i});
      continue;
    }
    const auto [last, is_new] = last_of.emplace(session, i);
    if (!is_new) returns.push_back({last->second, i});
    last->second = i;
  }
  return returns;
}

// How many requests each has, of those with a name that is not 0.
std::unordered_map<uint64_t, uint64_t> CountsOf(const Trace& trace, uint64_t TraceRequest::*name) {
  std::unordered_map<uint64_t, uint64_t> counts;
  for (const TraceRequest& request : trace.requests) {
    if (request.*name != 0) ++counts[request.*name];
  }
  return counts;
}

}  // namespace

CountSpread SpreadOf(std::vector<uint64_t> values) {
  if (values.empty()) return {};
  std::ranges::sort(values);
  const auto at = [&](double share) {
    return values[static_cast<size_t>(std::ceil(share * static_cast<double>(values.size()))) - 1];
  };
  return {.p50 = at(0.5), .p90 = at(0.9), .p99 = at(0.99), .most = values.back()};
}

TrafficProfile ProfileTraffic(const Trace& trace, const Overlap& overlap) {
  TrafficProfile profile;
  profile.requests = trace.requests.size();
  if (profile.requests == 0) return profile;
  profile.span = trace.requests.back().arrival - trace.requests.front().arrival;
  std::vector<uint64_t> inputs, outputs, contexts;
  for (size_t i = 0; i < trace.requests.size(); ++i) {
    const TraceRequest& request = trace.requests[i];
    inputs.push_back(request.input_tokens);
    outputs.push_back(request.output_tokens);
    contexts.push_back(request.input_tokens + request.output_tokens);
    profile.prompt_tokens += request.input_tokens;
    profile.output_tokens += request.output_tokens;
    profile.asked_most = std::max(profile.asked_most, request.asked_tokens);
    const RequestOverlap& alike = overlap.requests[i];
    profile.reusable_tokens += alike.match.length;
    if (alike.change == Change::kEdited) profile.edited_tokens += alike.lost_tokens();
    if (alike.change == Change::kMoved) profile.moved_tokens += alike.lost_tokens();
  }
  profile.input = SpreadOf(std::move(inputs));
  profile.output = SpreadOf(std::move(outputs));
  profile.context = SpreadOf(std::move(contexts));
  profile.position_tokens = overlap.position_tokens;
  profile.text_known = overlap.text_known;
  profile.divergences = DivergencesOf(trace, overlap);
  profile.returns = ReturnsOf(trace, overlap);
  profile.sessions = CountsOf(trace, &TraceRequest::session).size();
  const auto tenants = CountsOf(trace, &TraceRequest::tenant);
  profile.tenants = tenants.size();
  uint64_t largest = 0;
  for (const auto& [tenant, requests] : tenants) largest = std::max(largest, requests);
  profile.largest_tenant = static_cast<double>(largest) / static_cast<double>(profile.requests);
  return profile;
}

}  // namespace cachalot::sim
