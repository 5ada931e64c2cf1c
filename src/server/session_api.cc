#include "server/session_api.h"

#include <optional>
#include <string>
#include <utility>

#include "server/session_command.h"
#include "server/session_pages.h"

namespace cachalot::server {
namespace {

using engine::SessionCommand;

// Whose sessions are meant.
struct Owner {
  std::string name;
  CacheSalt salt;
  bool every = false;  // for the list
};

ApiResult<Owner> OwnerOf(const ApiKeys& keys, const Sender& by, const std::string& target) {
  const std::optional<std::string> tenant = QueryValue(target, "tenant");
  if (!tenant) return Owner{.name = by.admin ? "" : keys.NameOf(by.tenant), .salt = by.salt, .every = by.admin};
  if (!by.admin) {
    return ApiError{
        .status = 403, .message = "only the admin key may name a tenant", .param = "tenant", .code = "forbidden"};
  }
  const std::optional<CacheSalt> salt = keys.SaltOfTenant(*tenant);
  if (!salt) return InvalidField("tenant", "no key belongs to a tenant of this name");
  return Owner{.name = *tenant, .salt = *salt};
}

}  // namespace

uint64_t SessionApi::Await(std::shared_ptr<Exchange> exchange) {
  const uint64_t id = next_id_++;
  exchange->OnGone([this, id] { waiting_.erase(id); });
  waiting_.emplace(id, Waiting{std::move(exchange), {}});
  return id;
}

void SessionApi::Handle(const RouteMatch& match, const Sender& by, const PrepareContext& context, HttpRequest request,
                        std::shared_ptr<Exchange> exchange) {
  const ApiResult<Owner> found = OwnerOf(deps_.keys, by, request.target);
  if (const auto* error = std::get_if<ApiError>(&found)) return exchange->Respond(ErrorResponse(*error));
  const Owner& owner = std::get<Owner>(found);
  if (match.route == Route::kKvPrefetch) {
    PrepareContext theirs = context;
    theirs.salt = owner.salt;
    return Prefetch(theirs, owner.name, std::move(request), std::move(exchange));
  }
  ApiResult<SessionCommand> command = match.route == Route::kSessions
                                          ? ReadSessionList(request.target)
                                          : ReadSessionCommand(match, request.method, request.body);
  if (auto* read = std::get_if<SessionCommand>(&command)) {
    read->scope.salt = owner.salt;
    read->every_owner = owner.every;
    if (!owner.every) read->after.owner = owner.name;
  }
  Submit(Await(std::move(exchange)), owner.name, std::move(command));
}

void SessionApi::Prefetch(const PrepareContext& context, std::string owner, HttpRequest request,
                          std::shared_ptr<Exchange> exchange) {
  const uint64_t id = Await(std::move(exchange));
  const size_t bytes = request.body.size();
  const auto shared = std::make_shared<HttpRequest>(std::move(request));
  deps_.workers.Submit(bytes, [this, id, context, owner = std::move(owner), shared] {
    const auto command = std::make_shared<ApiResult<SessionCommand>>(ReadPrefetch(context, shared->body));
    if (auto* read = std::get_if<SessionCommand>(command.get()); read != nullptr && read->prompt.empty()) {
      read->scope.salt = context.salt;
    }
    deps_.post([this, id, owner, command] { Submit(id, owner, std::move(*command)); });
  });
}

void SessionApi::Submit(uint64_t id, const std::string& owner, ApiResult<SessionCommand> result) {
  const auto waiting = waiting_.find(id);
  if (waiting == waiting_.end()) return;
  if (const auto* error = std::get_if<ApiError>(&result)) {
    waiting->second.exchange->Respond(ErrorResponse(*error));
    waiting_.erase(waiting);
    return;
  }
  SessionCommand command = std::get<SessionCommand>(std::move(result));
  command.id = engine::SessionCommandId(id);
  command.name.owner = owner;
  std::vector<TokenId> prompt = std::move(command.prompt);
  command.prompt.clear();
  waiting->second.command = command;
  command.prompt = std::move(prompt);
  deps_.generator.Command(std::move(command));
}

void SessionApi::OnAnswers(const std::vector<engine::SessionAnswer>& answers) {
  for (const engine::SessionAnswer& answer : answers) {
    auto node = waiting_.extract(answer.id.value);
    if (!node.empty()) node.mapped().exchange->Respond(SessionPage(node.mapped().command, answer));
  }
}

}  // namespace cachalot::server
