// What the place where sessions last answers, as an input log hears it.
#include <memory>
#include <utility>

#include "engine/input_log.h"
#include "tier/durable_sessions.h"

namespace cachalot::engine {
namespace {

class LoggedSessions final : public tier::DurableSessions {
 public:
  LoggedSessions(tier::DurableSessions& sessions, InputLog& log) : sessions_(sessions), log_(log) {}

  std::vector<tier::StoredSession> TakeFound() override {
    std::vector<tier::StoredSession> found = sessions_.TakeFound();
    log_.NoteFound(found);
    return found;
  }
  void NotePut(const tier::SessionKey& key) override { sessions_.NotePut(key); }
  void NoteExtended(const tier::SessionKey& key, uint64_t from) override { sessions_.NoteExtended(key, from); }
  void NoteUsed(const tier::SessionKey& key) override { sessions_.NoteUsed(key); }
  void NoteHeld(const tier::SessionKey& key) override { sessions_.NoteHeld(key); }
  void NoteDeleted(const tier::SessionKey& key) override { sessions_.NoteDeleted(key); }
  SyncId Sync() override { return sessions_.Sync(); }
  std::vector<Ended> Poll(const Lookup& find) override {
    std::vector<Ended> ended = sessions_.Poll(find);
    for (const Ended& end : ended) log_.NoteSync({end.id.value, end.status.ok()});
    return ended;
  }
  void OnEnd(std::function<void()> call) override { sessions_.OnEnd(std::move(call)); }
  std::optional<Nanos> WakeAt() const override { return sessions_.WakeAt(); }
  bool idle() const override { return sessions_.idle(); }
  Status health() const override { return sessions_.health(); }

 private:
  tier::DurableSessions& sessions_;
  InputLog& log_;
};

}  // namespace

std::unique_ptr<tier::DurableSessions> MakeLoggedSessions(tier::DurableSessions& sessions, InputLog& log) {
  return std::make_unique<LoggedSessions>(sessions, log);
}

}  // namespace cachalot::engine
