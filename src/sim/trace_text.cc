#include "sim/trace_text.h"

#include <algorithm>

#include "base/hash.h"
#include "base/random.h"

namespace cachalot::sim {
namespace {

constexpr size_t kChunkWords = 64;  // text is shared in the pool by so much at a time

uint64_t HashOf(std::span<const uint32_t> words, uint64_t before) { return Hash64(std::as_bytes(words), before); }

// Word i of a source is the upper half of number i of the generator that has it as seed.
void AppendWords(const TextRun& run, const Trace& trace, std::vector<uint32_t>* out) {
  if (run.source == TextRun::kPool) {
    const auto begin = trace.pool.begin() + static_cast<ptrdiff_t>(run.begin);
    out->insert(out->end(), begin, begin + static_cast<ptrdiff_t>(run.tokens));
    return;
  }
  constexpr uint64_t kStep = 0x9E3779B97F4A7C15;  // of its state
  SplitMix64 random(run.source + kStep * run.begin);
  for (uint64_t i = 0; i < run.tokens; ++i) out->push_back(static_cast<uint32_t>(random() >> 32));
}

}  // namespace

std::vector<uint32_t> WordsOf(const Trace& trace, const TraceRequest& request) {
  std::vector<uint32_t> words;
  words.reserve(request.input_tokens + (request.text.empty() ? 0 : request.output_tokens));
  for (const TextRun& run : request.text) AppendWords(run, trace, &words);
  if (!request.text.empty()) return words;
  for (const uint64_t block : request.blocks) {
    const uint64_t tokens = std::min<uint64_t>(trace.block_tokens, request.input_tokens - words.size());
    AppendWords({.source = block, .begin = 0, .tokens = tokens}, trace, &words);
  }
  return words;
}

void TextKeeper::NameBlocks(std::span<const uint32_t> prompt, TraceRequest* request) {
  request->blocks.clear();
  uint64_t chain = 0;
  for (size_t begin = 0; begin < prompt.size(); begin += trace_.block_tokens) {
    chain = HashOf(prompt.subspan(begin, std::min<size_t>(trace_.block_tokens, prompt.size() - begin)), chain);
    request->blocks.push_back(kept_ == Kept::kNothing ? chain : ids_.emplace(chain, ids_.size()).first->second);
  }
}

void TextKeeper::KeepText(std::span<const uint32_t> words, TraceRequest* request) {
  request->text.clear();
  if (kept_ == Kept::kNothing) return;
  for (size_t begin = 0; begin < words.size(); begin += kChunkWords) {
    const auto chunk = words.subspan(begin, std::min(kChunkWords, words.size() - begin));
    const uint64_t place = Pooled(chunk);
    TextRun* last = request->text.empty() ? nullptr : &request->text.back();
    if (last != nullptr && last->begin + last->tokens == place) {
      last->tokens += chunk.size();
    } else {
      request->text.push_back({.source = TextRun::kPool, .begin = place, .tokens = chunk.size()});
    }
  }
}

uint64_t TextKeeper::Pooled(std::span<const uint32_t> chunk) {
  const auto [found, is_new] = chunks_.emplace(HashOf(chunk, chunk.size()), trace_.pool.size());
  const uint64_t place = found->second;
  if (!is_new && trace_.pool.size() - place >= chunk.size() &&
      std::ranges::equal(chunk, std::span(trace_.pool).subspan(place, chunk.size()))) {
    return place;
  }
  trace_.pool.insert(trace_.pool.end(), chunk.begin(), chunk.end());
  return trace_.pool.size() - chunk.size();
}

}  // namespace cachalot::sim
