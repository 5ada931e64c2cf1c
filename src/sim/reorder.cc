#include "sim/reorder.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/check.h"
#include "sim/trace_text.h"

namespace cachalot::sim {
namespace {

// Of a request's words, [begin, end).
struct Piece {
  uint64_t begin = 0;
  uint64_t end = 0;
};

// The pieces of a prompt and its answer in their new order. `before` are those of the request that it begins like.
std::vector<Piece> OrderOf(const RequestOverlap& request, const std::vector<Piece>& before, uint64_t words) {
  std::vector<Piece> pieces;
  for (const Piece& piece : before) {
    if (piece.begin < request.cut) pieces.push_back({piece.begin, std::min(piece.end, request.cut)});
  }
  std::vector<RepeatedRun> runs = request.runs;
  std::ranges::sort(runs, {}, [](const RepeatedRun& run) { return std::tuple(run.text, run.place, run.begin); });
  for (const RepeatedRun& run : runs) pieces.push_back({run.begin, run.begin + run.words});
  uint64_t at = request.cut;
  for (const RepeatedRun& run : request.runs) {
    if (run.begin > at) pieces.push_back({at, run.begin});
    at = run.begin + run.words;
  }
  if (words > at) pieces.push_back({at, words});
  return pieces;
}

}  // namespace

Trace Reordered(const Trace& trace, const Overlap& overlap) {
  CACHALOT_CHECK(overlap.text_known);
  Trace reordered{.block_tokens = trace.block_tokens};
  TextKeeper keeper(reordered);
  std::vector<std::vector<Piece>> orders(trace.requests.size());
  for (size_t i = 0; i < trace.requests.size(); ++i) {
    const RequestOverlap& alike = overlap.requests[i];
    const std::vector<uint32_t>& words = overlap.words[i];
    static const std::vector<Piece> kNothing;
    orders[i] = OrderOf(alike, alike.match.length > 0 ? orders[alike.match.with] : kNothing, words.size());
    std::vector<uint32_t> text;
    text.reserve(words.size());
    for (const Piece& piece : orders[i]) {
      text.insert(text.end(), words.begin() + static_cast<ptrdiff_t>(piece.begin),
                  words.begin() + static_cast<ptrdiff_t>(piece.end));
    }
    TraceRequest request = trace.requests[i];
    keeper.NameBlocks(std::span(text).first(std::min<size_t>(request.input_tokens, text.size())), &request);
    keeper.KeepText(text, &request);
    reordered.requests.push_back(std::move(request));
  }
  return reordered;
}

}  // namespace cachalot::sim
