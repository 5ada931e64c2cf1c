#include "server/pages.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/json.h"
#include "server/prompt.h"

namespace cachalot::server {
namespace {

void WriteModel(JsonWriter& w, const ServedModel& model, const std::string& name, int64_t created) {
  w.BeginObject();
  w.Key("id").String(name);
  w.Key("object").String("model");
  w.Key("created").Int(created);
  w.Key("owned_by").String("cachalot");
  w.Key("root").String(model.names[0]);
  w.Key("max_model_len").UInt(model.context_tokens);
  w.EndObject();
}

}  // namespace

HttpResponse RootPage(const ServedModel& model) {
  HttpResponse response;
  response.content_type = "text/plain; charset=utf-8";
  response.body = fmt::format(
      "Cachalot serves {}.\n\n"
      "POST /v1/chat/completions   a conversation\n"
      "POST /v1/completions        a text\n"
      "GET  /v1/models             what is served\n"
      "GET  /health                200, or 503 while stopping\n"
      "GET  /metrics               for Prometheus\n",
      model.names[0]);
  return response;
}

HttpResponse HealthPage(bool draining, const Degraded& degraded) {
  HttpResponse response;
  response.status = draining ? 503 : 200;
  const std::string_view problem = degraded.disk && degraded.sessions
                                       ? "the disk tier takes no writes, and changes to sessions are not written"
                                   : degraded.disk     ? "the disk tier takes no writes"
                                   : degraded.sessions ? "changes to sessions are not written"
                                                       : "";
  response.body = draining          ? R"({"status":"draining"})"
                  : problem.empty() ? R"({"status":"ok"})"
                                    : fmt::format(R"({{"status":"degraded","problem":"{}"}})", problem);
  return response;
}

HttpResponse VersionPage(std::string_view version) {
  HttpResponse response;
  JsonWriter(&response.body).BeginObject().Key("version").String(version).EndObject();
  return response;
}

HttpResponse MetricsPage(const Metrics& metrics) {
  HttpResponse response;
  response.content_type = "text/plain; version=0.0.4; charset=utf-8";
  response.body = metrics.Exposition();
  return response;
}

HttpResponse ModelsPage(const ServedModel& model, int64_t created) {
  HttpResponse response;
  JsonWriter w(&response.body);
  w.BeginObject().Key("object").String("list").Key("data").BeginArray();
  for (const std::string& name : model.names) WriteModel(w, model, name, created);
  w.EndArray().EndObject();
  return response;
}

HttpResponse ModelPage(const ServedModel& model, const std::string& name, int64_t created) {
  if (std::find(model.names.begin(), model.names.end(), name) == model.names.end()) {
    return ErrorResponse(UnknownModel(model, name));
  }
  HttpResponse response;
  JsonWriter w(&response.body);
  WriteModel(w, model, name, created);
  return response;
}

}  // namespace cachalot::server
