#include "load/live_server.h"

#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace cachalot::load {
namespace {

constexpr Nanos kTimeout = std::chrono::seconds(10);

Status UnexpectedAnswer(std::string_view target, const ShortAnswer& answer) {
  return Invalid(fmt::format("no Cachalot answers there: GET {} gives HTTP {}", target, answer.status));
}

const std::string* TextIn(const Json& object, std::string_view key) {
  const Json* value = object.Find(key);
  return value == nullptr ? nullptr : value->AsString();
}

}  // namespace

LiveServer::LiveServer(Url root, ServerKeys keys, std::unique_ptr<HttpClient> client, const Clock& clock,
                       FunctionRef<bool()> go_on)
    : root_(std::move(root)),
      keys_(std::move(keys)),
      client_(std::move(client)),
      asker_(clock, kTimeout, client_.get(), go_on) {}

Result<std::unique_ptr<LiveServer>> LiveServer::Open(const std::string& url, ServerKeys keys, const Clock& clock,
                                                     FunctionRef<bool()> go_on) {
  CACHALOT_ASSIGN_OR_RETURN(Url root, ParseUrl(url));
  constexpr std::string_view kApi = "/v1";
  if (root.path.ends_with(kApi)) root.path.resize(root.path.size() - kApi.size());
  CACHALOT_ASSIGN_OR_RETURN(auto client, HttpClient::Create(root, clock));
  return std::unique_ptr<LiveServer>(new LiveServer(std::move(root), std::move(keys), std::move(client), clock, go_on));
}

Result<ShortAnswer> LiveServer::Get(const std::string& key, const std::string& target) {
  Result<ShortAnswer> answer = asker_.AskFor(FormatRequest(root_, key, target, nullptr));
  if (!answer.ok()) return answer.status().Annotate(address());
  return answer;
}

Result<Scrape> LiveServer::ReadMetrics() {
  CACHALOT_ASSIGN_OR_RETURN(const ShortAnswer answer, Get("", "/metrics"));
  if (answer.status != 200) return UnexpectedAnswer("/metrics", answer).Annotate(address());
  Result<Scrape> scrape = Scrape::Read(answer.body);
  if (scrape.ok()) return scrape;
  return scrape.status().Annotate(fmt::format("{}/metrics is not that of a Cachalot of this version", address()));
}

Result<ServerIdentity> LiveServer::ReadIdentity() {
  ServerIdentity identity;
  CACHALOT_RETURN_IF_ERROR(ReadModel(&identity).Annotate(address()));
  if (!keys_.admin.empty()) CACHALOT_RETURN_IF_ERROR(ReadKv(&identity).Annotate(address()));
  return identity;
}

Status LiveServer::ReadModel(ServerIdentity* identity) {
  CACHALOT_ASSIGN_OR_RETURN(const ShortAnswer answer, Get(keys_.api, "/v1/models"));
  if (answer.status == 401 && keys_.api.empty()) return OkStatus();
  if (answer.status == 401) return Invalid("the API key is not taken (--api-key, CACHALOT_API_KEY)");
  if (answer.status != 200) return UnexpectedAnswer("/v1/models", answer);
  const Result<Json> page = ParseJson(answer.body);
  if (!page.ok()) return page.status().Annotate("GET /v1/models");
  const Json* models = page->Find("data");
  const bool some = models != nullptr && models->AsArray() != nullptr && !models->AsArray()->empty();
  const std::string* name = some ? TextIn(models->AsArray()->front(), "id") : nullptr;
  const Json* context = some ? models->AsArray()->front().Find("max_model_len") : nullptr;
  if (name == nullptr || context == nullptr || context->AsInt() == nullptr || *context->AsInt() < 1) {
    return Invalid("GET /v1/models: expected models with \"id\" and \"max_model_len\"");
  }
  identity->model = *name;
  identity->context_tokens = static_cast<uint64_t>(*context->AsInt());
  return OkStatus();
}

Status LiveServer::ReadKv(ServerIdentity* identity) {
  CACHALOT_ASSIGN_OR_RETURN(const ShortAnswer answer, Get(keys_.admin, "/v1/kv"));
  if (answer.status == 401) return Invalid("the admin key is not taken (--admin-key, CACHALOT_ADMIN_KEY)");
  if (answer.status == 404)
    return Invalid("there is an admin key here, but the server was started without --admin-key");
  if (answer.status != 200) return UnexpectedAnswer("/v1/kv", answer);
  Result<Json> page = ParseJson(answer.body);
  if (!page.ok()) return page.status().Annotate("GET /v1/kv");
  identity->kv = std::move(page).value();
  return OkStatus();
}

}  // namespace cachalot::load
