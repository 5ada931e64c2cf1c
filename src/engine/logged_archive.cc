// What the place where sessions are saved answers, as an input log hears it.
#include <memory>
#include <utility>

#include "engine/input_log.h"
#include "tier/session_archive.h"

namespace cachalot::engine {
namespace {

class LoggedArchive final : public tier::SessionArchive {
 public:
  LoggedArchive(tier::SessionArchive& archive, InputLog& log) : archive_(archive), log_(log) {}

  Status BeginSave(const std::string& name, const tier::ArchiveHeader& header) override {
    return Begun(archive_.BeginSave(name, header));
  }
  Result<std::span<std::byte>> PartRoom(uint64_t bytes) override { return archive_.PartRoom(bytes); }
  void WritePart(std::vector<uint32_t> groups) override { archive_.WritePart(std::move(groups)); }
  void FinishSave() override { archive_.FinishSave(); }
  Status BeginRestore(const std::string& owner, const std::string& name) override {
    return Begun(archive_.BeginRestore(owner, name));
  }
  void ReadPart() override { archive_.ReadPart(); }
  void Close() override { archive_.Close(); }

  bool under_way() const override { return archive_.under_way(); }
  std::optional<Ended> Poll() override {
    std::optional<Ended> ended = archive_.Poll();
    ArchiveAnswers* const answers = log_.archive();
    if (!ended || answers == nullptr) return ended;
    answers->ends.push_back({ended->status.code(), ended->groups, ended->file_bytes});
    if (ended->header) answers->headers.push_back(*ended->header);
    return ended;
  }
  void OnEnd(std::function<void()> call) override { archive_.OnEnd(std::move(call)); }
  std::optional<Nanos> WakeAt() const override { return archive_.WakeAt(); }

 private:
  Status Begun(Status status) {
    if (ArchiveAnswers* const answers = log_.archive()) answers->begins.push_back(status.code());
    return status;
  }

  tier::SessionArchive& archive_;
  InputLog& log_;
};

}  // namespace

std::unique_ptr<tier::SessionArchive> MakeLoggedArchive(tier::SessionArchive& archive, InputLog& log) {
  return std::make_unique<LoggedArchive>(archive, log);
}

}  // namespace cachalot::engine
