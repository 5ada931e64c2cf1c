#include "text/stream_decoder.h"

#include "base/utf8.h"
#include "text/tokenizer.h"

namespace cachalot::text {

StreamDecoder::StreamDecoder(const Tokenizer& tokenizer, bool with_special, DecodeFrom from)
    : tokenizer_(tokenizer),
      with_special_(with_special),
      at_start_(from == DecodeFrom::kStart && tokenizer.strips_first_space()) {}

std::string StreamDecoder::Push(TokenId id) {
  std::string_view bytes = tokenizer_.TokenBytes(id, with_special_);
  if (bytes.empty()) return {};
  if (at_start_) {
    bytes.remove_prefix(bytes.front() == ' ');
    at_start_ = false;
  }
  pending_ += bytes;
  const size_t complete = pending_.size() - IncompleteUtf8Suffix(pending_);
  std::string out = ReplaceInvalidUtf8(std::string_view(pending_).substr(0, complete));
  pending_.erase(0, complete);
  return out;
}

std::string StreamDecoder::Finish() {
  std::string out = ReplaceInvalidUtf8(pending_);
  pending_.clear();
  return out;
}

}  // namespace cachalot::text
