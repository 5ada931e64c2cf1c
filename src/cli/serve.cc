#include <algorithm>
#include <cstdio>
#include <ctime>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <signal.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/entropy.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/options.h"
#include "base/utf8.h"
#include "cli/commands.h"
#include "cli/compatibility.h"
#include "cli/flags.h"
#include "cli/loaded_model.h"
#include "cli/serve_logs.h"
#include "cli/version.h"
#include "engine/engine_loop.h"
#include "model/catalogue.h"
#include "server/engine_generator.h"
#include "server/server.h"

namespace cachalot::cli {
namespace {

constexpr uint64_t kMaxKeyFileBytes = 1 << 20;
constexpr uint64_t kMaxPublicTextBytes = 4 << 20;

struct ServeOptions {
  std::string chat_template;
  std::string api_key;
  std::string api_keys;
  std::string admin_key;
  std::string public_prefix;
  std::string log_level = "info";
  template <class F>
  void Visit(F&& f) {
    f("chat-template", chat_template, "File with a Jinja chat template to use instead of the model's own.");
    f("api-key", api_key, "Clients must send this as a bearer token; or set CACHALOT_API_KEY.");
    f("api-keys", api_keys,
      "File with one key per line: a tenant's name, the key's SHA-256, which `printf %s KEY | sha256sum` prints, and "
      "its terms, such as weight=2 tenant-sequences=8.");
    f("admin-key", admin_key, "Key of the paths under /v1/kv, which are absent without it; or set CACHALOT_ADMIN_KEY.");
    f("public-prefix", public_prefix,
      "Files, separated by commas, with beginnings of prompts (system messages) whose KV all tenants share.");
    f("log-level", log_level, "debug, info, warning, error or off.");
  }
};

Status CheckTogether(const ServeSettings& settings) {
  if (const auto refused = Found(settings, Verdict::kRefused); !refused.empty()) {
    return Invalid(fmt::format("{}", fmt::join(refused, "; ")));
  }
  for (const std::string& warning : Found(settings, Verdict::kWarned)) LogWarning(warning);
  return OkStatus();
}

// Waits for SIGINT and SIGTERM on a thread of its own: the first drains the server, the second stops it at once.
class SignalThread {
 public:
  // Blocks the signals in this thread and all that it starts, so that only the waiting thread takes them.
  static void BlockSignals() {
    sigset_t set = Signals();
    pthread_sigmask(SIG_BLOCK, &set, nullptr);
  }

  explicit SignalThread(server::Server& server)
      : thread_([&server] {
          const sigset_t set = Signals();
          int signal = 0;
          sigwait(&set, &signal);
          if (signal == SIGUSR1) return;
          LogInfo("draining: running requests finish, new ones are refused; once more to stop at once");
          server.Drain();
          sigwait(&set, &signal);
          if (signal != SIGUSR1) server.Stop();
        }) {}
  ~SignalThread() {
    pthread_kill(thread_.native_handle(), SIGUSR1);
    thread_.join();
  }

 private:
  static sigset_t Signals() {
    sigset_t set;
    sigemptyset(&set);
    for (int signal : {SIGINT, SIGTERM, SIGUSR1}) sigaddset(&set, signal);
    return set;
  }
  std::thread thread_;
};

Result<server::ApiKeys> KeysOf(const ServeOptions& options, const TenantTerms& terms) {
  server::ApiKeys keys(terms);
  if (!options.api_keys.empty()) {
    CACHALOT_ASSIGN_OR_RETURN(const std::string text, ReadFile(options.api_keys, kMaxKeyFileBytes));
    CACHALOT_ASSIGN_OR_RETURN(keys, server::ApiKeys::Parse(text, options.api_keys, terms));
  }
  const auto given = [](const std::string& flag, const char* variable) {
    return flag.empty() ? GetEnv(variable, "") : flag;
  };
  keys.AddSingle(given(options.api_key, "CACHALOT_API_KEY"));
  keys.SetAdmin(given(options.admin_key, "CACHALOT_ADMIN_KEY"));
  return keys;
}

Result<std::vector<std::string>> PublicTextsOf(const ServeOptions& options) {
  std::vector<std::string> texts;
  for (const std::string& path : server::SplitNames(options.public_prefix)) {
    CACHALOT_ASSIGN_OR_RETURN(std::string text, ReadFile(path, kMaxPublicTextBytes));
    if (text.empty() || FindInvalidUtf8(text) != std::string::npos)
      return Invalid(fmt::format("{}: expected a text in UTF-8", path));
    texts.push_back(std::move(text));
  }
  return texts;
}

server::ServedModel ServedModelOf(const LoadedModel& model, double pin_budget) {
  server::ServedModel served;
  served.names = {model.name};
  served.fingerprint = "fp_" + HexOf(model.weights->fingerprint()).substr(0, 12);
  served.context_tokens = static_cast<uint32_t>(model.weights->context_tokens());
  served.pool_tokens = static_cast<uint64_t>((1 - pin_budget) * static_cast<double>(model.budget.tokens));
  served.tokenizer = model.tokenizer.get();
  for (TokenId id = 0; id < served.tokenizer->vocabulary_size(); ++id) {
    served.longest_token_bytes = std::max(served.longest_token_bytes, served.tokenizer->TokenBytes(id, true).size());
  }
  served.chat_template = model.chat_template ? &*model.chat_template : nullptr;
  return served;
}

// The engine's thread has ended: what the last requests left behind is written from here.
Status CloseStore(LoadedModel& model, Nanos limit) {
  if (!engine::WriteLeftBehind(*model.engine, model.clock, limit)) {
    LogWarning(
        "not all was written to disk in time: some KV is computed again, and sessions may be as they were before");
  }
  return model.store == nullptr ? OkStatus() : model.store->Close();
}

}  // namespace

Status ServeCommand(const Arguments& arguments) {
  ModelOptions model_options;
  model_options.model = model::kDefaultModel;
  engine::EngineOptions engine_options;
  server::ServerOptions server_options;
  ServeOptions options;
  LogOptions log_options;
  FlagSet flags("serve", "Serves MODEL over the OpenAI API.");
  flags.Positional("MODEL", &model_options.model, fmt::format("path, or one of: {}", model::CatalogueNames()), false);
  flags.AddAll(server_options);
  flags.AddAll(options);
  flags.AddAll(model_options);
  flags.AddAll(model_options.tiers);
  flags.AddAll(engine_options);
  flags.AddAll(log_options);
  bool print_compatibility = false;
  flags.Add("print-compatibility", print_compatibility,
            "Print which settings do not go together, and do nothing else.");
  CACHALOT_ASSIGN_OR_RETURN(const bool go_on, flags.Parse(arguments));
  if (!go_on) return OkStatus();
  if (print_compatibility) {
    fmt::print("{}", CompatibilityPage());
    return OkStatus();
  }
  CACHALOT_ASSIGN_OR_RETURN(const LogLevel level, ParseLogLevel(options.log_level));
  SetLogLevel(level);
  CACHALOT_RETURN_IF_ERROR(CheckTogether({model_options, engine_options, server_options, log_options}));
  if (const auto problems = server::Problems(server_options); !problems.empty()) {  // before a model takes its time
    return Invalid(fmt::format("{}", fmt::join(problems, "; ")));
  }

  CACHALOT_ASSIGN_OR_RETURN(server::ApiKeys keys, KeysOf(options, engine_options.terms));
  engine_options.tenants = keys.AllTerms();
  CACHALOT_ASSIGN_OR_RETURN(std::vector<std::string> public_texts, PublicTextsOf(options));

  SignalThread::BlockSignals();
  CACHALOT_ASSIGN_OR_RETURN(const auto logs, ServeLogs::Open(log_options, model_options, &engine_options));
  CACHALOT_ASSIGN_OR_RETURN(const auto model, LoadModel(model_options, engine_options));
  if (!options.chat_template.empty()) {
    CACHALOT_RETURN_IF_ERROR(OverrideChatTemplate(options.chat_template, model.get()));
  }
  fmt::print("{}", StartTable(*model));
  Json settings = Json::Object{{"server", OptionsAsJson(server_options)},
                               {"model", OptionsAsJson(model_options)},
                               {"tiers", OptionsAsJson(model_options.tiers)},
                               {"engine", OptionsAsJson(engine_options)}};
  LogDebug(settings.Dump());

  Metrics metrics;
  metrics.Set(Gauge::kKvBytes, static_cast<double>(model->memory->slot_bytes() * model->memory->slots()));
  if (model->store != nullptr) {
    const tier::DiskTierStats& disk = model->store->stats().disk;
    metrics.Set(Gauge::kDiskBlocks, static_cast<double>(disk.live_blocks));
    metrics.Set(Gauge::kDiskLiveBytes, static_cast<double>(disk.live_bytes));
    metrics.Set(Gauge::kDiskOccupiedBytes, static_cast<double>(disk.occupied_bytes));
  }
  server::EngineGenerator engine_generator(*model->engine, model->clock);
  server::Generator& generator = logs->Begin(engine_generator, model->clock, metrics);
  server::Server server(server_options, {.model = ServedModelOf(*model, engine_options.pin_budget),
                                         .generator = generator,
                                         .clock = model->clock,
                                         .metrics = metrics,
                                         .entropy = SystemEntropy(),
                                         .keys = std::move(keys),
                                         .public_texts = std::move(public_texts),
                                         .version = kVersion,
                                         .settings = std::move(settings)});
  CACHALOT_ASSIGN_OR_RETURN(const uint16_t port, server.Start());
  fmt::print("listening on http://{}:{}\n", server_options.host, port);
  std::fflush(stdout);
  const SignalThread signals(server);
  server.Wait();
  Status closed = CloseStore(*model, std::chrono::seconds(server_options.drain_timeout));
  logs->Close();
  return closed;
}

}  // namespace cachalot::cli
