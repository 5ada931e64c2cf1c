#include "load/idle_way.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace cachalot::load {
namespace {

class NoWay final : public IdleWay {
 public:
  std::string name() const override { return "none"; }
  std::string Members(uint64_t) const override { return ""; }
  Status Suspend(uint64_t) override { return Invalid("this server has no way to suspend a conversation"); }
  Result<bool> Restore(uint64_t) override { return false; }
  Result<std::string> Where(uint64_t) override { return std::string(); }
};

// Sessions of Cachalot's API.
class SessionsWay final : public IdleWay {
 public:
  SessionsWay(const ResumeOptions& options, Url url, Asker* asker)
      : api_key_(options.api_key), seed_(options.seed), url_(std::move(url)), asker_(asker) {}

  std::string name() const override { return "cachalot"; }
  std::string Members(uint64_t conversation) const override {
    constexpr int kTtlSeconds = 24 * 3600;  // nobody goes on with them after the run
    return fmt::format(R"("kv":{{"session":"{}","session_ttl":{}}})", IdOf(conversation), kTtlSeconds);
  }
  Status Suspend(uint64_t conversation) override {
    const std::string body = "{}";
    return asker_->AskForJson(FormatRequest(url_, api_key_, TargetOf(conversation) + "/suspend", &body)).status();
  }
  Result<bool> Restore(uint64_t) override { return false; }
  Result<std::string> Where(uint64_t conversation) override {
    CACHALOT_ASSIGN_OR_RETURN(const Json session,
                              asker_->AskForJson(FormatRequest(url_, api_key_, TargetOf(conversation), nullptr)));
    std::string most = "nowhere";
    int64_t most_tokens = 0;
    for (const std::string_view tier : {"hot", "host", "disk"}) {
      const Json* tiers = session.Find("tiers");
      const Json* share = tiers == nullptr ? nullptr : tiers->Find(tier);
      const Json* tokens = share == nullptr ? nullptr : share->Find("tokens");
      if (tokens == nullptr || tokens->AsInt() == nullptr) return Unavailable("the session's tiers are not told");
      if (*tokens->AsInt() > most_tokens) {
        most = tier;
        most_tokens = *tokens->AsInt();
      }
    }
    return most;
  }

 private:
  std::string IdOf(uint64_t conversation) const { return fmt::format("bench-resume-{}-{}", seed_, conversation); }
  std::string TargetOf(uint64_t conversation) const { return "/kv/sessions/" + IdOf(conversation); }

  const std::string api_key_;
  const uint64_t seed_;
  const Url url_;
  Asker* const asker_;
};

// The slots of llama-server, of which one is used: saved, emptied, and restored before the conversation goes on.
class SlotsWay final : public IdleWay {
 public:
  SlotsWay(const ResumeOptions& options, Url url, Asker* asker)
      : api_key_(options.api_key), seed_(options.seed), url_(std::move(url)), asker_(asker) {
    if (url_.path.ends_with("/v1")) url_.path.resize(url_.path.size() - 3);
  }

  std::string name() const override { return "llama-slots"; }
  std::string Members(uint64_t) const override { return R"("id_slot":0,"cache_prompt":true)"; }
  Status Suspend(uint64_t conversation) override {
    CACHALOT_RETURN_IF_ERROR(Act("save", FileOf(conversation)));
    saved_.push_back(conversation);
    return Act("erase", "{}");
  }
  Result<bool> Restore(uint64_t conversation) override {
    if (std::ranges::find(saved_, conversation) == saved_.end()) return false;
    CACHALOT_RETURN_IF_ERROR(Act("restore", FileOf(conversation)));
    return true;
  }
  Result<std::string> Where(uint64_t conversation) override {
    return std::string(std::ranges::find(saved_, conversation) == saved_.end() ? "" : "file");
  }

 private:
  std::string FileOf(uint64_t conversation) const {
    return fmt::format(R"({{"filename":"bench-resume-{}-{}.bin"}})", seed_, conversation);
  }
  Status Act(std::string_view action, const std::string& body) {
    return asker_->AskForJson(FormatRequest(url_, api_key_, fmt::format("/slots/0?action={}", action), &body)).status();
  }

  const std::string api_key_;
  const uint64_t seed_;
  Url url_;
  Asker* const asker_;
  std::vector<uint64_t> saved_;
};

}  // namespace

Result<std::unique_ptr<IdleWay>> MakeIdleWay(const ResumeOptions& options, const Url& url, Asker* asker) {
  if (options.way == "llama-slots") return std::unique_ptr<IdleWay>(new SlotsWay(options, url, asker));
  if (options.way == "none") return std::unique_ptr<IdleWay>(new NoWay);
  const Status listed = asker->AskForJson(FormatRequest(url, options.api_key, "/kv/sessions", nullptr)).status();
  if (listed.ok()) return std::unique_ptr<IdleWay>(new SessionsWay(options, url, asker));
  if (options.way == "cachalot") return listed.Annotate("the list of sessions");
  return std::unique_ptr<IdleWay>(new NoWay);
}

}  // namespace cachalot::load
