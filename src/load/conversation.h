// Conversation is one session under way: what was said so far, as the server must be told it.
// Threads:   one thread.
// Ownership: owns its session and the history.
// Invariant: a turn's body holds all turns before it with the server's own answers.
// Cost:      linear in the history, per turn.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "load/workload.h"

namespace cachalot::load {

enum class Endpoint : uint8_t { kChat, kCompletions };

struct RequestStyle {
  Endpoint endpoint = Endpoint::kChat;
  std::string model;
  bool ignore_eos = false;
};

class Conversation {
 public:
  Conversation(Session session, const RequestStyle& style);

  // JSON body of the present turn; `more` are further members of it. Requires: has_turn().
  std::string Body(std::string_view more = {}) const;
  bool has_turn() const { return turn_ < session_.turns.size(); }
  Nanos think() const { return session_.turns[turn_].think; }
  // The present turn was answered so; on to the next.
  void Answered(std::string_view answer);

 private:
  void BeginTurn();

  Session session_;
  const RequestStyle& style_;
  std::string history_;  // chat: the messages as JSON, separated by commas; completions: the text
  size_t turn_ = 0;
};

}  // namespace cachalot::load
