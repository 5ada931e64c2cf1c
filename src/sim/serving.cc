#include "sim/serving.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/check.h"
#include "base/random.h"
#include "sim/sim_server.h"

namespace cachalot::sim {
namespace {

constexpr Nanos kNever = Nanos::max();

struct Client {
  SplitMix64 random{0};
  std::vector<TokenId> history;  // of the conversation so far
  size_t computed = 0;           // of it: tokens whose KV was computed once
  uint32_t turns = 0;            // of the conversation
  Nanos wakes{0};                // kNever while it waits for an answer
  ServedRequest request;         // the last; `turn` counts from 0
};

class Simulation {
 public:
  Simulation(const ServingOptions& options, std::unique_ptr<SimServer> server)
      : options_(options), server_(std::move(server)), end_(options.warm_up + options.measured) {
    for (uint32_t i = 0; i < options.clients.clients; ++i) {
      Client& client = clients_.emplace_back();
      client.random = SplitMix64(options.seed ^ (uint64_t{i + 1} << 32));
      client.wakes = Think(client.random);  // not all at once
    }
    system_.resize(options.clients.system_tokens);
    SplitMix64 random(options.seed);
    AppendText(random, &system_, 0);
  }

  ServingReport Run() {
    while (server_->now() < end_ || unanswered_ > 0) Advance();
    std::ranges::sort(report_.requests, {}, [](const ServedRequest& r) { return std::pair(r.arrival, r.client); });
    report_.measured = options_.measured;
    report_.tokens_recomputed += preempted_;
    return std::move(report_);
  }

 private:
  Nanos Think(SplitMix64& random) const {
    const double rest = -std::log1p(-random.Uniform()) * static_cast<double>(options_.clients.mean_think.count());
    return options_.clients.shortest_think + Nanos(std::llround(rest));
  }
  static uint32_t Draw(SplitMix64& random, const TokenRange& range) {
    return range.least + static_cast<uint32_t>(random.Below(uint64_t{range.most} - range.least + 1));
  }
  // Overwrites text[from, end) with tokens.
  void AppendText(SplitMix64& random, std::vector<TokenId>* text, size_t from) const {
    for (size_t i = from; i < text->size(); ++i) {
      (*text)[i] = static_cast<TokenId>(random.Below(options_.model.vocabulary));
    }
  }
  bool Measures(Nanos moment) const { return moment >= options_.warm_up && moment < end_; }

  void Advance() {
    const Nanos now = server_->now();
    engine::StepInput input;
    Nanos next = now < end_ ? end_ : kNever;
    for (Client& client : clients_) {
      if (client.wakes > now) {
        next = std::min(next, client.wakes);
      } else if (MayAsk(client)) {
        input.arrivals.push_back(NextTurn(client));
      }
    }
    const std::optional<engine::StepOutput> step = server_->Advance(std::move(input), next);
    Sample();
    if (!step) return;
    const engine::StepOutput& output = *step;
    CACHALOT_CHECK(output.rejections.empty());  // the queue and the pool have room for every client
    for (const engine::TokenEvent& event : output.tokens) TakeToken(event);
    for (const engine::FinishEvent& event : output.finishes) TakeFinish(event);
    Count(now, output.stats);
    if (options_.observe) options_.observe(server_->now(), output.stats);
  }

  bool MayAsk(const Client& client) const {
    const auto index = static_cast<uint32_t>(&client - clients_.data());
    return !options_.may_ask || options_.may_ask(index, client.history.empty());
  }

  engine::GenerateRequest NextTurn(Client& client) {
    const ClientOptions& shape = options_.clients;
    if (client.history.empty()) {
      client.history = system_;
      client.computed = system_computed_ ? system_.size() : 0;
      client.turns = Draw(client.random, shape.turns);
      client.request.turn = 0;
    } else {
      ++client.request.turn;
    }
    const size_t from = client.history.size();
    client.history.resize(from + Draw(client.random, client.request.turn == 0 ? shape.first : shape.next));
    AppendText(client.random, &client.history, from);
    client.request.client = static_cast<uint32_t>(&client - clients_.data());
    client.request.arrival = server_->now();
    client.request.prompt_tokens = static_cast<uint32_t>(client.history.size());
    client.request.output_tokens = 0;
    client.wakes = kNever;
    if (Measures(client.request.arrival)) ++unanswered_;

    engine::GenerateRequest asked;
    asked.id = RequestId(uint64_t{client.request.client} + 1);
    asked.prompt = client.history;
    asked.max_tokens = shape.max_tokens;
    asked.sampling.temperature = 0;
    asked.stop = EndAfter(Draw(client.random, shape.output));
    return asked;
  }

  void TakeToken(const engine::TokenEvent& event) {
    Client& client = clients_[event.id.value - 1];
    if (client.request.output_tokens++ == 0) client.request.first_token = server_->now();
    client.history.push_back(event.token.token);
  }

  void TakeFinish(const engine::FinishEvent& event) {
    Client& client = clients_[event.id.value - 1];
    ServedRequest& request = client.request;
    request.finish = server_->now();
    request.cached_tokens = event.cached_tokens;
    const size_t known = std::max(client.computed, system_computed_ ? system_.size() : 0);
    request.recomputed_tokens = static_cast<uint32_t>(known - std::min<size_t>(known, event.cached_tokens));
    if (Measures(request.finish)) report_.tokens_recomputed += request.recomputed_tokens;
    if (Measures(request.arrival)) {
      report_.requests.push_back(request);
      --unanswered_;
    }
    system_computed_ = true;
    client.computed = client.history.size() - 1;  // the last token's KV comes with the next turn
    client.wakes = server_->now() + Think(client.random);
    if (request.turn + 1 == client.turns) client.history.clear();
  }

  // What the engine did in the measured time: its totals at the end less those at the beginning.
  void Count(Nanos now, const engine::EngineStats& stats) {
    const LoadSample load{server_->now(), server_->time(), server_->moved()};
    if (now < options_.warm_up) at_begin_ = stats, load_at_begin_ = load;
    if (now >= end_) return;
    report_.last = stats;
    report_.time = load.time - load_at_begin_.time;
    report_.moved = load.moved - load_at_begin_.moved;
    preempted_ = stats.tokens_recomputed - at_begin_.tokens_recomputed;
    report_.tokens_generated = stats.tokens_generated - at_begin_.tokens_generated;
    report_.preemptions = stats.preemptions - at_begin_.preemptions;
    report_.tokens_computed = stats.tokens_computed - at_begin_.tokens_computed;
  }

  void Sample() {
    if (options_.sample_every == Nanos(0)) return;
    const Nanos due = report_.samples.empty() ? Nanos(0) : report_.samples.back().at + options_.sample_every;
    if (server_->now() >= due) report_.samples.push_back({server_->now(), server_->time(), server_->moved()});
  }

  const ServingOptions& options_;
  const std::unique_ptr<SimServer> server_;
  const Nanos end_;
  std::vector<TokenId> system_;
  bool system_computed_ = false;
  std::vector<Client> clients_;
  uint64_t unanswered_ = 0;  // of the requests that are measured
  uint64_t preempted_ = 0;   // tokens that preempted requests computed again, in the measured time
  engine::EngineStats at_begin_;
  LoadSample load_at_begin_;
  ServingReport report_;
};

std::vector<std::string> Problems(const ServingOptions& options) {
  std::vector<std::string> problems = engine::Problems(options.engine);
  const ClientOptions& clients = options.clients;
  if (clients.clients == 0) problems.push_back("there are no clients");
  const std::pair<const char*, TokenRange> ranges[] = {
      {"first", clients.first}, {"next", clients.next}, {"output", clients.output}, {"turns", clients.turns}};
  for (const auto& [name, range] : ranges) {
    if (range.least == 0 || range.most < range.least) {
      problems.push_back(fmt::format("{} is {} to {}; expected 1 or more, ascending", name, range.least, range.most));
    }
  }
  if (clients.output.most > clients.max_tokens) {
    problems.push_back(
        fmt::format("outputs have up to {} tokens; only {} are asked for", clients.output.most, clients.max_tokens));
  }
  const uint64_t longest = uint64_t{clients.system_tokens} + clients.first.most + clients.max_tokens +
                           uint64_t{clients.turns.most - 1} * (uint64_t{clients.next.most} + clients.output.most);
  const uint64_t room =
      std::min<uint64_t>(options.model.context_tokens, uint64_t{options.slots} * options.model.kv.block_tokens);
  if (longest > room) {
    problems.push_back(fmt::format("a conversation may have {} tokens; context and pool hold {}", longest, room));
  }
  if (clients.clients > options.engine.max_queue) {
    problems.push_back(fmt::format("{} clients; the queue holds {}", clients.clients, options.engine.max_queue));
  }
  return problems;
}

}  // namespace

Nanos ServingReport::Ttft(double share) const {
  if (requests.empty()) return Nanos(0);
  std::vector<Nanos> sorted;
  for (const ServedRequest& request : requests) sorted.push_back(request.ttft());
  const auto rank = static_cast<size_t>(std::ceil(share * static_cast<double>(sorted.size())));
  const auto at = sorted.begin() + static_cast<ptrdiff_t>(std::clamp<size_t>(rank, 1, sorted.size()) - 1);
  std::ranges::nth_element(sorted, at);
  return *at;
}

double ServingReport::Goodput(Nanos target) const {
  const auto met = std::ranges::count_if(requests, [&](const ServedRequest& r) { return r.ttft() <= target; });
  return static_cast<double>(met) / ToSeconds(measured);
}

double ServingReport::TokensPerSecond() const { return static_cast<double>(tokens_generated) / ToSeconds(measured); }

double ServingReport::RecomputedShare() const {
  return tokens_computed == 0 ? 0 : static_cast<double>(tokens_recomputed) / static_cast<double>(tokens_computed);
}

double ServingReport::ComputeShare() const {
  const double busy = ToSeconds(time.compute + time.transfers);
  return busy == 0 ? 1 : ToSeconds(time.compute) / busy;
}

Result<ServingReport> SimulateServing(const ServingOptions& options) {
  if (const auto problems = Problems(options); !problems.empty()) {
    return Invalid(fmt::format("{}", fmt::join(problems, "; ")));
  }
  Result<std::unique_ptr<SimServer>> server =
      SimServer::Make(options.engine, options.model, options.slots, options.tiers);
  if (!server.ok()) return server.status();
  return Simulation(options, std::move(server).value()).Run();
}

}  // namespace cachalot::sim
