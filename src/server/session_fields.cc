#include "server/session_fields.h"

#include <algorithm>

#include "base/utf8.h"
#include "server/retention_fields.h"

namespace cachalot::server {
namespace {

void ReadReturns(FieldReader& kv, engine::ReturnHint* returns) {
  kv.Bool("returns", &returns->returns);
  if (kv.Find("returns_in") == nullptr) return;
  float seconds = 0;
  kv.Float("returns_in", &seconds);
  if (seconds < 0 || seconds > static_cast<float>(kMaxTtlSeconds)) {
    return kv.Fail(kv.PathOf("returns_in"), fmt::format("is {}; it must be between 0 and {}", seconds, kMaxTtlSeconds));
  }
  if (!returns->returns) return kv.Fail(kv.PathOf("returns_in"), "contradicts \"returns\": false");
  returns->in = Nanos(static_cast<Nanos::rep>(double{seconds} * 1e9));
}

}  // namespace

SessionFields ReadSession(FieldReader& reader) {
  SessionFields session;
  const Json* object = reader.Find("kv");
  if (object == nullptr || object->AsObject() == nullptr) return session;
  FieldReader kv(*object, "kv");
  if (kv.Find("session") != nullptr) {
    kv.String("session", &session.id);
    if (auto problem = SessionIdProblem(session.id)) kv.Fail(kv.PathOf("session"), *std::move(problem));
  }
  kv.Int("session_ttl", 1, kMaxTtlSeconds, &session.ttl_seconds);
  ReadReturns(kv, &session.returns);
  reader.Adopt(kv.error());
  return session;
}

std::optional<std::string> SessionIdProblem(std::string_view id) {
  if (id.empty() || id.size() > engine::kMostSessionNameBytes) {
    return fmt::format("has {} bytes; 1 to {} are allowed", id.size(), engine::kMostSessionNameBytes);
  }
  if (FindInvalidUtf8(id) != std::string_view::npos) return "is not UTF-8";
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; };
  if (std::ranges::any_of(id, is_control)) return "contains a control character";
  if (id == "." || id == "..") return "would not survive in a path";
  return std::nullopt;
}

}  // namespace cachalot::server
