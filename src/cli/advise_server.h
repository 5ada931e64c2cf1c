// ServerReading is what `cachalot advise --url` learns of a running server, and what follows from it.
// Threads:   main thread.
// Ownership: owns its connections.
// Invariant: the server is asked, never told: all requests are GET.
// Cost:      a few requests.
#pragma once

#include <memory>
#include <string>

#include "base/clock.h"
#include "base/scrape.h"
#include "base/status.h"
#include "cli/advise_options.h"
#include "cli/advise_run.h"
#include "cli/commands.h"
#include "load/live_server.h"
#include "plan/report.h"
#include "plan/setting.h"
#include "sim/agreement.h"
#include "sim/trace.h"

namespace cachalot::cli {

class ServerReading {
 public:
  // Reads metrics and identity once. The keys are those of the options, else of the environment.
  static Result<ServerReading> Read(const AdviseOptions& options);

  // The server as flags of `cachalot advise`, to stand before those of the user. kInvalid where it does not show what
  // is needed, and `options` do not say it either.
  Result<Arguments> Flags(const AdviseOptions& options) const;
  // kInvalid where `present` is not this server's pool, as some flag is not the server's.
  Status CheckPool(const plan::Setting& present) const;
  // Which settings had to be guessed; empty: none.
  std::string Unknown() const;

  // Reads metrics once more, `seconds` later, and judges what there was in between.
  Result<plan::Report> Watch(double seconds);
  // The simulation of a whole record at the server's own setting against its metrics.
  Result<sim::Agreement> Compare(const sim::Trace& record, const plan::Setting& present,
                                 const AdviseRun::Options& options) const;

  std::string address() const { return server_->address(); }

 private:
  ServerReading(std::unique_ptr<SteadyClock> clock, std::unique_ptr<load::LiveServer> server, Scrape scrape,
                load::ServerIdentity identity, Nanos at);

  std::unique_ptr<SteadyClock> clock_;
  std::unique_ptr<load::LiveServer> server_;
  Scrape scrape_;
  load::ServerIdentity identity_;
  Nanos at_{0};  // when the scrape was read
};

}  // namespace cachalot::cli
