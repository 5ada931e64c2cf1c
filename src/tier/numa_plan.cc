#include "tier/numa_plan.h"

#include <sched.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/file.h"
#include "base/units.h"

namespace cachalot::tier {
namespace {

constexpr uint64_t kFileLimitBytes = 1 << 20;
constexpr uint64_t kLargePage = 2 << 20;
constexpr uint32_t kMostIds = 1 << 16;  // processors or nodes: what no machine has

std::optional<uint32_t> TakeNumber(std::string_view* text) {
  text->remove_prefix(std::min(text->find_first_not_of(" \t\n"), text->size()));
  uint32_t value = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error != std::errc()) return std::nullopt;
  text->remove_prefix(end - text->data());
  return value;
}

bool TakeMark(std::string_view* text, char mark) {
  if (!text->starts_with(mark)) return false;
  text->remove_prefix(1);
  return true;
}

// "0-3,8": nothing when it is not of that form.
std::optional<std::vector<uint32_t>> ParseIds(std::string_view text) {
  std::vector<uint32_t> ids;
  for (bool more = text.find_first_not_of(" \t\n") != std::string_view::npos; more; more = TakeMark(&text, ',')) {
    const std::optional<uint32_t> first = TakeNumber(&text);
    const std::optional<uint32_t> last = first && TakeMark(&text, '-') ? TakeNumber(&text) : first;
    if (!last || *last < *first || *last >= kMostIds) return std::nullopt;
    for (uint32_t id = *first; id <= *last; ++id) ids.push_back(id);
  }
  if (text.find_first_not_of(" \t\n") != std::string_view::npos) return std::nullopt;
  return ids;
}

std::vector<uint32_t> ParseNumbers(std::string_view text) {
  std::vector<uint32_t> numbers;
  for (auto number = TakeNumber(&text); number; number = TakeNumber(&text)) numbers.push_back(*number);
  return numbers;
}

// Of a line "Node 0 MemFree:   15754724 kB"; nothing when there is none.
std::optional<uint64_t> BytesOf(std::string_view text, std::string_view key) {
  const size_t at = text.find(key);
  if (at == std::string_view::npos) return std::nullopt;
  text.remove_prefix(at + key.size());
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  uint64_t kib = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), kib);
  if (error != std::errc() || kib > (std::numeric_limits<uint64_t>::max() >> 10)) return std::nullopt;
  return kib << 10;
}

Result<NumaNode> ReadNode(const std::string& folder, uint32_t id, size_t nodes) {
  const std::string path = fmt::format("{}/node{}", folder, id);
  NumaNode node{.id = id};
  CACHALOT_ASSIGN_OR_RETURN(const std::string cpus, ReadFile(path + "/cpulist", kFileLimitBytes));
  std::optional<std::vector<uint32_t>> ids = ParseIds(cpus);
  if (!ids) return Unavailable(path + "/cpulist is no list of processors");
  node.cpus = std::move(*ids);
  CACHALOT_ASSIGN_OR_RETURN(const std::string distances, ReadFile(path + "/distance", kFileLimitBytes));
  node.distances = ParseNumbers(distances);
  if (node.distances.size() != nodes) {
    return Unavailable(fmt::format("{}/distance has {} numbers, expected {}", path, node.distances.size(), nodes));
  }
  CACHALOT_ASSIGN_OR_RETURN(const std::string memory, ReadFile(path + "/meminfo", kFileLimitBytes));
  const std::optional<uint64_t> free = BytesOf(memory, " MemFree:");
  if (!free) return Unavailable(path + "/meminfo has no MemFree line");
  node.available_bytes =
      *free + BytesOf(memory, " Active(file):").value_or(0) + BytesOf(memory, " Inactive(file):").value_or(0);
  return node;
}

struct Place {
  uint32_t node;
  uint32_t distance;
  uint64_t most_pages;
  uint64_t pages = 0;
};

std::vector<Place> PlacesByDistance(const NumaTopology& topology, std::span<const uint32_t> near, double most) {
  std::vector<Place> places;
  for (size_t to = 0; to < topology.nodes.size(); ++to) {
    const NumaNode& node = topology.nodes[to];
    uint32_t distance = std::numeric_limits<uint32_t>::max();
    for (const NumaNode& from : topology.nodes) {
      if (std::ranges::find(near, from.id) != near.end()) distance = std::min(distance, from.distances.at(to));
    }
    if (distance == std::numeric_limits<uint32_t>::max()) distance = 0;
    const double bytes = static_cast<double>(node.available_bytes) * most;
    places.push_back({node.id, distance, static_cast<uint64_t>(bytes) / kLargePage});
  }
  std::ranges::stable_sort(places, {}, &Place::distance);
  return places;
}

// Divides `pages` among equally near places, as evenly as what they have allows. Returns the rest.
uint64_t Spread(std::span<Place> ring, uint64_t pages) {
  std::vector<Place*> smallest_first;
  for (Place& place : ring) smallest_first.push_back(&place);
  std::ranges::stable_sort(smallest_first, {}, &Place::most_pages);
  uint64_t left = smallest_first.size();
  for (Place* const place : smallest_first) {
    place->pages = std::min(place->most_pages, (pages + left - 1) / left);
    pages -= place->pages;
    --left;
  }
  return pages;
}

}  // namespace

Result<NumaTopology> ReadNumaTopology(const std::string& folder) {
  CACHALOT_ASSIGN_OR_RETURN(const std::string online, ReadFile(folder + "/online", kFileLimitBytes));
  const std::optional<std::vector<uint32_t>> ids = ParseIds(online);
  if (!ids || ids->empty()) return Unavailable(folder + "/online is no list of nodes");
  NumaTopology topology;
  for (const uint32_t id : *ids) {
    CACHALOT_ASSIGN_OR_RETURN(NumaNode node, ReadNode(folder, id, ids->size()));
    topology.nodes.push_back(std::move(node));
  }
  return topology;
}

std::vector<uint32_t> AffinityCpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<uint32_t> cpus;
  if (::sched_getaffinity(0, sizeof(set), &set) != 0) return cpus;
  for (uint32_t cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  }
  return cpus;
}

std::vector<uint32_t> NodesOf(const NumaTopology& topology, std::span<const uint32_t> cpus) {
  std::vector<uint32_t> ids;
  for (const NumaNode& node : topology.nodes) {
    if (std::ranges::find_first_of(node.cpus, cpus) != node.cpus.end()) ids.push_back(node.id);
  }
  return ids;
}

NumaPlan PlanNuma(const NumaTopology& topology, uint64_t bytes, std::span<const uint32_t> near, double most) {
  std::vector<Place> places = PlacesByDistance(topology, near, most);
  uint64_t pages = bytes / kLargePage + (bytes % kLargePage != 0);
  for (auto begin = places.begin(); begin != places.end() && pages > 0;) {
    const auto end = std::find_if(begin, places.end(), [&](const Place& p) { return p.distance != begin->distance; });
    pages = Spread({begin, end}, pages);
    begin = end;
  }
  NumaPlan plan;
  uint64_t offset = 0;
  for (const Place& place : places) {
    if (place.pages == 0) continue;
    const uint64_t share = std::min(place.pages * kLargePage, bytes - offset);
    plan.shares.push_back({place.node, place.distance, offset, share});
    offset += share;
  }
  plan.unplaced_bytes = bytes - offset;
  return plan;
}

std::string Describe(const NumaPlan& plan) {
  std::string text;
  for (const NumaShare& share : plan.shares) {
    const std::string distance = share.distance > 0 ? fmt::format(" (distance {})", share.distance) : "";
    text += fmt::format("{}node {}{}: {}", text.empty() ? "" : ", ", share.node, distance, FormatBytes(share.bytes));
  }
  if (plan.unplaced_bytes > 0) {
    text += fmt::format("{}wherever there is room: {}", text.empty() ? "" : ", ", FormatBytes(plan.unplaced_bytes));
  }
  return text;
}

}  // namespace cachalot::tier
