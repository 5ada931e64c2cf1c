#include "text/stop_matcher.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/utf8.h"

namespace cachalot::text {

Result<std::shared_ptr<const StopSet>> StopSet::Create(std::span<const std::string> strings) {
  if (strings.size() > kMaxStrings)
    return Invalid(fmt::format("{} stop strings, at most {} are allowed", strings.size(), kMaxStrings));
  size_t total_bytes = 0;
  for (size_t i = 0; i < strings.size(); ++i) {
    total_bytes += strings[i].size();
    if (strings[i].empty()) return Invalid(fmt::format("stop string {} is empty", i));
    if (FindInvalidUtf8(strings[i]) != std::string::npos)
      return Invalid(fmt::format("stop string {} is not valid UTF-8", i));
    if (total_bytes > kMaxTotalBytes)
      return Invalid(fmt::format("the stop strings have more than {} bytes together", kMaxTotalBytes));
  }
  std::shared_ptr<StopSet> set(new StopSet());
  for (size_t i = 0; i < strings.size(); ++i) set->Add(strings[i], static_cast<uint32_t>(i));
  set->Link();
  return std::shared_ptr<const StopSet>(std::move(set));
}

void StopSet::Add(std::string_view string, uint32_t index) {
  State state = kStart;
  for (char byte : string) {
    const State* next = next_.Find(EdgeKey(state, byte));
    if (next != nullptr) {
      state = *next;
      continue;
    }
    const auto made = static_cast<State>(nodes_.size());
    Node node;
    node.depth = nodes_[state].depth + 1;
    nodes_.push_back(node);
    edges_.push_back({state, byte, made});
    next_.Set(EdgeKey(state, byte), made);
    state = made;
  }
  if (!nodes_[state].stop.has_value()) nodes_[state].stop = Stop{index, nodes_[state].depth};
}

// Shallow nodes first, so that what a node falls back to is linked before it.
void StopSet::Link() {
  std::stable_sort(edges_.begin(), edges_.end(),
                   [&](const Edge& a, const Edge& b) { return nodes_[a.from].depth < nodes_[b.from].depth; });
  for (const Edge& edge : edges_) {
    if (edge.from == kStart) continue;  // one byte falls back to nothing
    Node& node = nodes_[edge.to];
    node.fallback = Next(nodes_[edge.from].fallback, edge.byte);
    if (!node.stop.has_value()) node.stop = nodes_[node.fallback].stop;
  }
  edges_ = {};
}

StopSet::State StopSet::Next(State state, char byte) const {
  for (;;) {
    const State* next = next_.Find(EdgeKey(state, byte));
    if (next != nullptr) return *next;
    if (state == kStart) return kStart;
    state = nodes_[state].fallback;
  }
}

StopMatcher::Step StopMatcher::Push(std::string_view text) {
  if (matched_.has_value()) return {{}, matched_};
  if (set_ == nullptr) return {std::string(text), std::nullopt};
  for (size_t i = 0; i < text.size(); ++i) {
    state_ = set_->Next(state_, text[i]);
    if (const std::optional<StopSet::Stop> stop = set_->StopAt(state_)) {
      held_ += text.substr(0, i + 1);
      matched_ = stop->index;
      Step step{Release(stop->bytes), matched_};
      held_.clear();
      held_begin_ = 0;
      return step;
    }
  }
  held_ += text;
  return {Release(set_->depth(state_)), std::nullopt};
}

std::string StopMatcher::Finish() { return Release(0); }

std::string StopMatcher::Release(size_t keep_bytes) {
  const size_t keep_begin = held_.size() - keep_bytes;
  std::string out = held_.substr(held_begin_, keep_begin - held_begin_);
  held_begin_ = keep_begin;
  if (held_begin_ > held_.size() / 2) {
    held_.erase(0, held_begin_);
    held_begin_ = 0;
  }
  return out;
}

}  // namespace cachalot::text
