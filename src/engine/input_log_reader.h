// InputLogReader reads what an InputLog wrote, step by step, as its bytes come.
// Threads:   belongs to one.
// Ownership: owns the source, and what was read of it.
// Invariant: a log that was cut off anywhere is read up to the last whole step, and damage is found, with its offset.
//            Nothing in a log is believed: what cannot be is damage.
// Cost:      memory for one frame and a part of the next; a frame that is declared larger than a log has them is
//            refused before it is read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "base/status.h"
#include "engine/input_log.h"

namespace cachalot::engine {

class InputLogReader {
 public:
  // Adds what comes next to the end of `bytes`, at most so many. False: it has ended.
  using Source = std::function<Result<bool>(uint64_t most_bytes, std::string* bytes)>;

  // kCorrupt or kInvalid, with the offset, where not even the engine's facts can be read.
  static Result<InputLogReader> Open(Source source);

  const InputFacts& facts() const { return facts_; }
  // The next step. False: the log is whole, and over. kCorrupt, with the offset: here it is damaged or was cut off;
  // other errors are the source's. There is nothing after either.
  Result<bool> Next(LoggedStep* step);
  // Of what was not read yet.
  uint64_t offset() const { return at_; }

 private:
  explicit InputLogReader(Source source) : source_(std::move(source)) {}
  Status ReadFacts();
  Result<bool> ReadStep(LoggedStep* step);
  Result<std::string_view> Peek(uint64_t bytes);
  void Skip(uint64_t bytes);
  Result<std::string_view> TakeFrame();

  Source source_;
  bool source_ended_ = false;
  std::string buffer_;
  size_t taken_ = 0;  // of it
  uint64_t at_ = 0;
  InputFacts facts_;
  Nanos now_{0};  // of the last step
  bool over_ = false;
  Status damage_;
};

// Bytes that are there, and must stay.
InputLogReader::Source SourceOf(std::string_view bytes);

}  // namespace cachalot::engine
