// ReplayedSessions is the place where a server's sessions last as its input log tells of it.
// Threads:   one.
// Ownership: owns what is left of the log's answers.
// Invariant: the engine that asked then is told what it was told. What is noted goes nowhere.
// Cost:      none.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "engine/input_log.h"
#include "tier/durable_sessions.h"

namespace cachalot::sim {

class ReplayedSessions final : public tier::DurableSessions {
 public:
  // Of the next step.
  void Begin(std::vector<tier::StoredSession> found, std::vector<engine::SyncEnd> ends) {
    found_ = std::move(found);
    ends_ = std::move(ends);
  }

  std::vector<tier::StoredSession> TakeFound() override { return std::exchange(found_, {}); }
  void NotePut(const tier::SessionKey&) override {}
  void NoteExtended(const tier::SessionKey&, uint64_t) override {}
  void NoteUsed(const tier::SessionKey&) override {}
  void NoteHeld(const tier::SessionKey&) override {}
  void NoteDeleted(const tier::SessionKey&) override {}
  SyncId Sync() override { return SyncId(++last_sync_); }
  std::vector<Ended> Poll(const Lookup&) override {
    std::vector<Ended> ended;
    for (const engine::SyncEnd& end : std::exchange(ends_, {})) {
      ended.push_back({SyncId(end.sync), end.well ? OkStatus() : Unavailable("so it was when it was logged")});
    }
    return ended;
  }
  void OnEnd(std::function<void()>) override {}
  std::optional<Nanos> WakeAt() const override { return std::nullopt; }
  bool idle() const override { return true; }
  Status health() const override { return OkStatus(); }

 private:
  std::vector<tier::StoredSession> found_;
  std::vector<engine::SyncEnd> ends_;
  uint64_t last_sync_ = 0;
};

}  // namespace cachalot::sim
