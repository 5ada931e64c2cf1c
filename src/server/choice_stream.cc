#include "server/choice_stream.h"

#include <algorithm>
#include <utility>

namespace cachalot::server {

ChoiceStream::ChoiceStream(const text::Tokenizer& tokenizer, std::shared_ptr<const text::StopSet> stops,
                           uint64_t offset)
    : decoder_(tokenizer, /*with_special=*/false, text::DecodeFrom::kContinuation),
      matcher_(std::move(stops)),
      code_points_(offset) {}

void ChoiceStream::Push(const SampledToken& token) {
  if (stopped_) return;
  held_.push_back({{token, code_points_}, decoded_bytes_});
  Show(decoder_.Push(token.token));
}

void ChoiceStream::Finish() {
  if (stopped_) return;
  Show(decoder_.Finish());
  if (stopped_) return;
  text_ += matcher_.Finish();
  for (HeldToken& held : held_) tokens_.push_back(std::move(held.shown));
  held_.clear();
}

void ChoiceStream::Show(std::string_view piece) {
  decoded_bytes_ += piece.size();
  code_points_ += CountCodePoints(piece);
  text::StopMatcher::Step step = matcher_.Push(piece);
  stopped_ = step.matched.has_value();
  shown_bytes_ += step.emit.size();
  text_ += step.emit;
  // A token without text of its own goes with the text before it, unless that is where the stop string begins.
  const bool nothing_held_back = !stopped_ && shown_bytes_ == decoded_bytes_;
  while (!held_.empty() && (nothing_held_back || held_.front().begin_bytes < shown_bytes_)) {
    tokens_.push_back(std::move(held_.front().shown));
    held_.pop_front();
  }
  if (stopped_) held_.clear();
}

std::string ChoiceStream::TakeText() { return std::exchange(text_, {}); }
std::vector<ShownToken> ChoiceStream::TakeTokens() { return std::exchange(tokens_, {}); }

uint64_t CountCodePoints(std::string_view text) {
  const auto begins_one = [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; };
  return static_cast<uint64_t>(std::count_if(text.begin(), text.end(), begins_one));
}

}  // namespace cachalot::server
