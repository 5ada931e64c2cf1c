#include "engine/input_log_reader.h"

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/crc32c.h"
#include "base/log.h"
#include "base/random.h"
#include "engine/input_fields.h"
#include "exec/testing/fake_executor.h"

namespace cachalot::engine {
namespace {

InputFacts SomeFacts() {
  InputFacts facts{
      .options = {}, .layout = exec::FakeExecutor::LayoutFor({}), .step_curve = {}, .host_rate = {}, .host = {}};
  facts.options.eviction = "lru";
  facts.options.tenants = {{.queue = 3, .weight = 2}, {}};
  facts.options.sessions.memory = ByteSize{uint64_t{1} << 50};
  facts.slots = 100;
  facts.vocabulary = 1000;
  facts.context_tokens = 4096;
  facts.most_rows = 8;
  facts.most_logit_rows = 4;
  facts.identity = {1, 2, 3};
  facts.step_curve = StepCurve{1, 2, 3, 4, 5};
  facts.host = HostFacts{1 << 20, "s3fifo"};
  return facts;
}

GenerateRequest FullRequest() {
  GenerateRequest request;
  request.id = RequestId(77);
  request.prompt = {1, 2, 999};
  request.max_tokens = 5;
  request.n = 2;
  request.sampling.temperature = 0.25f;
  request.sampling.logit_bias = {{3, -1.5f}};
  request.sampling.seed = ~uint64_t{0};
  request.end_tokens = {4, 9};
  request.stop = [] { return nullptr; };
  request.prompt_logprobs = 3;
  request.scope = {.salt = {.high = 8, .low = 9}, .public_tokens = 2};
  request.tenant = TenantId(1);
  request.retention = {.priority = RetentionPriority::kHigh, .ttl = Nanos(5), .pin = Nanos(6), .scrub = true};
  request.session = SessionName{"owner", "id"};
  request.session_ttl_seconds = 11;
  request.returns = {.returns = true, .in = Nanos(12)};
  return request;
}

StepInput FullInput(Nanos now) {
  StepInput input{
      .now = now, .last_duration = Nanos(2), .last_stalled = Nanos(1), .waited = Nanos(3), .unix_seconds = 4};
  input.arrivals.push_back(FullRequest());
  input.cancels = {RequestId(5), RequestId(6)};
  input.inquiries.push_back({InquiryId(7), InquiryKind::kProbe, {FullRequest()}});
  SessionCommand command;
  command.id = SessionCommandId(8);
  command.verb = SessionVerb::kPrefetch;
  command.name = {"owner", "id"};
  command.other = "file";
  command.prompt = {1, 2};
  command.when = Nanos(9);
  input.session_commands.push_back(command);
  return input;
}

void NoteStoreAnswers(StoreNotes* notes, int step) {
  notes->asked.groups.Note(11, 3);
  notes->asked.deadlines.Note(12, Nanos(13 + step));
  notes->asked.load_rates.Note(0, {.latency_seconds = 0.5, .bytes_per_second = 1e9});
  notes->asked.levels.Note(0, {.well = false, .transfers = 2, .queued_load_bytes = 14});
  notes->asked.refusals.Note(static_cast<uint64_t>(StoreConsent::kStaging), true);
  notes->starts = {15, 0};
  notes->ends = {{15, true}};
}

struct ReadLog {
  InputFacts facts;
  std::vector<LoggedStep> steps;
  Status damage;
};

Result<ReadLog> ReadAll(InputLogReader::Source source) {
  CACHALOT_ASSIGN_OR_RETURN(InputLogReader reader, InputLogReader::Open(std::move(source)));
  ReadLog log{.facts = reader.facts(), .steps = {}, .damage = {}};
  for (LoggedStep step;;) {
    const Result<bool> more = reader.Next(&step);
    log.damage = more.status();
    if (!more.ok()) {
      EXPECT_EQ(reader.Next(&step).status().message(), more.status().message()) << "there is nothing after it";
      return log;
    }
    if (!*more) return log;
    log.steps.push_back(std::move(step));
  }
}

Result<ReadLog> ParseInputLog(std::string_view bytes) { return ReadAll(SourceOf(bytes)); }

tier::StoredSession SomeSession() {
  return {.key = {"owner", "id"}, .identity = {9}, .scope = {}, .tokens = {1, 2}, .created = 3, .pinned = true};
}

tier::ArchiveHeader SomeHeader() {
  return {.session = SomeSession(), .slot_bytes = 17, .block_tokens = 2, .kv_tokens = 2, .parts = 1, .saved = 18};
}

struct Made {
  std::string bytes;
  std::vector<size_t> ends;  // offsets at which a step, or the facts, ended
};

Made MakeLog(int steps) {
  Made made;
  InputLog log([&](const std::string& bytes) { made.bytes += bytes; });
  log.Begin(SomeFacts());
  made.ends.push_back(made.bytes.size());
  StepOutput output;
  for (int i = 0; i < steps; ++i) {
    if (i == 1) log.Drained();
    if (i == 0) log.NoteFound({SomeSession()});
    EXPECT_EQ(log.store(), nullptr);
    log.NoteCopy(CopyAnswer::kFailed);  // between steps
    log.BeginStep(FullInput(Nanos(10 * i)));
    if (i != 1) NoteStoreAnswers(log.store(), i);
    log.NoteCopy(CopyAnswer::kDone);
    log.NoteSync({16, true});
    if (i == 2) {
      *log.archive() = {.begins = {Code::kOk, Code::kOverloaded},
                        .ends = {{.code = Code::kCorrupt}, {.groups = {1, 3}, .file_bytes = 19}},
                        .headers = {SomeHeader()}};
    }
    output.tokens = {{RequestId(77), 0, {.token = 3}}, {RequestId(77), 1, {.token = static_cast<TokenId>(i)}}};
    output.finishes = {{RequestId(77), 1, FinishReason::kStop}};
    output.stats.step_failures = i == 2 ? 1 : output.stats.step_failures;
    log.EndStep(output);
    made.ends.push_back(made.bytes.size());
  }
  log.End();
  return made;
}

// All that a step's input holds, as bytes.
std::string BytesOf(const StepInput& input) {
  LogWriter out;
  out(input);
  return out.Take();
}

TEST(InputLog, HoldsAllThatEntered) {
  const auto log = ParseInputLog(MakeLog(4).bytes);
  ASSERT_TRUE(log.ok()) << log.status().message();
  EXPECT_TRUE(log->damage.ok());
  ASSERT_EQ(log->steps.size(), 4u);
  for (size_t i = 0; i < 4; ++i) {
    const LoggedStep& step = log->steps[i];
    EXPECT_EQ(BytesOf(step.input), BytesOf(FullInput(Nanos(10 * static_cast<int64_t>(i)))));
    EXPECT_EQ(step.drains, i == 1);
    EXPECT_EQ(step.run_failed, i == 2);
    EXPECT_EQ(step.copies, std::vector{CopyAnswer::kDone});
    ASSERT_EQ(step.syncs.size(), 1u);
    EXPECT_EQ(step.syncs[0].sync, 16u);
    ASSERT_EQ(step.tokens.size(), 2u);
    EXPECT_EQ(step.tokens[1].token, i);
    EXPECT_FALSE(step.tokens[0].stops);
    EXPECT_TRUE(step.tokens[1].stops);
  }
  EXPECT_EQ(log->steps[0].found_sessions, std::vector{SomeSession()});
  ASSERT_TRUE(log->steps[0].store && !log->steps[1].store && log->steps[2].store);
  const StoreAnswers& store = *log->steps[0].store;
  EXPECT_EQ(store.groups.at(0).answer, 3u);
  EXPECT_EQ(store.load_rates.at(0).answer.bytes_per_second, 1e9);
  EXPECT_EQ(store.levels.at(0).answer, (StoreLevels{false, 2, 14}));
  EXPECT_TRUE(store.refusals.at(0).answer);
  EXPECT_EQ(store.starts, (std::vector<uint64_t>{15, 0}));
  EXPECT_EQ(store.ends.at(0).transfer, 15u);
  EXPECT_TRUE(log->steps[2].store->groups.empty()) << "as it was";
  EXPECT_EQ(log->steps[2].store->deadlines.at(0).answer, Nanos(15));
  ASSERT_TRUE(!log->steps[1].archive && log->steps[2].archive && !log->steps[3].archive);
  const ArchiveAnswers& archive = *log->steps[2].archive;
  EXPECT_EQ(archive.begins, (std::vector{Code::kOk, Code::kOverloaded}));
  ASSERT_EQ(archive.ends.size(), 2u);
  EXPECT_EQ(archive.ends[0].code, Code::kCorrupt);
  EXPECT_EQ(archive.ends[1].groups, (std::vector<uint32_t>{1, 3}));
  EXPECT_EQ(archive.ends[1].file_bytes, 19u);
  EXPECT_EQ(archive.headers, std::vector{SomeHeader()});
  const GenerateRequest& request = log->steps[0].input.arrivals.at(0);
  EXPECT_EQ(request.prompt, FullRequest().prompt);
  EXPECT_EQ(request.session, FullRequest().session);
  EXPECT_EQ(request.retention, FullRequest().retention);
  EXPECT_TRUE(request.stop);
  const InputFacts facts = SomeFacts();
  EXPECT_EQ(log->facts.options.eviction, "lru");
  EXPECT_EQ(log->facts.options.tenants.at(0).weight, 2u);
  EXPECT_EQ(log->facts.options.sessions.memory.bytes, facts.options.sessions.memory.bytes);
  EXPECT_EQ(log->facts.layout.slot_bytes, facts.layout.slot_bytes);
  EXPECT_EQ(log->facts.identity, facts.identity);
  EXPECT_EQ(log->facts.step_curve, facts.step_curve);
  EXPECT_EQ(log->facts.host->memory_bytes, facts.host->memory_bytes);
}

TEST(InputLog, ALogThatWasCutOffIsReadUpToTheLastWholeStep) {
  const Made made = MakeLog(3);
  for (size_t size = 0; size < made.bytes.size(); ++size) {
    const auto log = ParseInputLog(std::string_view(made.bytes).substr(0, size));
    if (size < made.ends.front()) {
      ASSERT_FALSE(log.ok()) << size;
      EXPECT_NE(log.status().message().find("offset"), std::string::npos);
      continue;
    }
    ASSERT_TRUE(log.ok()) << size << ": " << log.status().message();
    EXPECT_EQ(log->damage.code(), Code::kCorrupt) << size;
    const auto whole = std::ranges::count_if(made.ends, [&](size_t end) { return end <= size; }) - 1;
    EXPECT_EQ(log->steps.size(), static_cast<size_t>(whole)) << size;
    const std::string at = std::to_string(made.ends[static_cast<size_t>(whole)]);
    EXPECT_TRUE(log->damage.message().starts_with("offset " + at + ":")) << log->damage.message();
  }
}

TEST(InputLog, ItIsReadAsItComes) {
  const Made made = MakeLog(5);
  SplitMix64 random(1);
  size_t given = 0;
  const auto pieces = [&](uint64_t most, std::string* bytes) -> Result<bool> {
    const size_t size = std::min<size_t>({most, 1 + random.Below(40), made.bytes.size() - given});
    *bytes += made.bytes.substr(given, size);
    given += size;
    return size > 0;
  };
  Result<InputLogReader> reader = InputLogReader::Open(pieces);
  ASSERT_TRUE(reader.ok()) << reader.status().message();
  for (size_t i = 0; i < 5; ++i) {
    LoggedStep step;
    EXPECT_TRUE(reader->Next(&step).value());
    EXPECT_EQ(BytesOf(step.input), BytesOf(FullInput(Nanos(10 * static_cast<int64_t>(i)))));
    EXPECT_EQ(reader->offset(), made.ends[i + 1]);
    EXPECT_LT(given, made.ends[i + 1] + 40) << "no more is read than it takes";
  }
  LoggedStep step;
  EXPECT_FALSE(reader->Next(&step).value());
  EXPECT_FALSE(reader->Next(&step).value());
}

TEST(InputLog, AFrameThatIsSaidToBeLargerThanAnyIsNotRead) {
  std::string facts = MakeLog(0).bytes;
  facts.resize(MakeLog(0).ends.front());
  uint64_t given = 0;
  const auto endless = [&](uint64_t most, std::string* bytes) -> Result<bool> {
    *bytes += given == 0 ? facts : std::string(most, static_cast<char>(0xFF));
    given = bytes->size();
    return true;
  };
  const auto log = ReadAll(endless);
  EXPECT_EQ(log->damage.code(), Code::kCorrupt);
  EXPECT_NE(log->damage.message().find("a frame of 4294967295 bytes, expected at most"), std::string::npos);
  EXPECT_LT(given, 10u << 20);
}

TEST(InputLog, WhatCannotBeReadAnyMoreIsNoDamage) {
  const Made made = MakeLog(2);
  const auto failing = [&, given = false](uint64_t, std::string* bytes) mutable -> Result<bool> {
    if (std::exchange(given, true)) return Unavailable("the disk is gone");
    *bytes += made.bytes.substr(0, made.ends[1] + 3);
    return true;
  };
  const auto log = ReadAll(failing);
  EXPECT_EQ(log->damage.code(), Code::kUnavailable);
  EXPECT_EQ(log->steps.size(), 1u);
}

TEST(InputLog, WithAStepThatNobodyWouldReadAgainItEnds) {
  SetLogLevel(LogLevel::kOff);
  std::string bytes;
  InputLog log([&](const std::string& more) { bytes += more; }, 5000);
  log.Begin(SomeFacts());
  for (int i = 0; i < 4; ++i) {
    StepInput input{.now = Nanos(i)};
    input.arrivals.emplace_back().prompt.assign(i == 2 ? 1300 : 100, 7);
    log.BeginStep(input);
    log.EndStep({});
  }
  log.End();
  const auto read = ParseInputLog(bytes);
  EXPECT_EQ(read->steps.size(), 2u);
  EXPECT_EQ(read->damage.code(), Code::kCorrupt);
}

TEST(InputLog, AFlippedBitIsFound) {
  const Made made = MakeLog(2);
  for (size_t i = 0; i < made.bytes.size(); ++i) {
    std::string bytes = made.bytes;
    bytes[i] = static_cast<char>(bytes[i] ^ (1 << (i % 8)));
    const auto log = ParseInputLog(bytes);
    EXPECT_FALSE(log.ok() && log->damage.ok()) << i;
  }
}

// Frames whose checksums are right, whatever they hold.
std::string Framed(const std::string& payload) {
  LogWriter head;
  head(static_cast<uint32_t>(payload.size()), Crc32c(std::as_bytes(std::span(payload))));
  return head.Take() + payload;
}

TEST(InputLog, WhatCannotBeIsRefusedThoughItsChecksumIsRight) {
  const Made made = MakeLog(3);
  const std::string facts = made.bytes.substr(0, made.ends[0]);
  for (size_t step = 0; step < 3; ++step) {
    const size_t begin = made.ends[step] + 8, length = made.ends[step + 1] - begin;
    for (size_t i = 0; i < length; ++i) {
      std::string payload = made.bytes.substr(begin, length);
      payload[i] = static_cast<char>(0xFF);
      static_cast<void>(ParseInputLog(facts + Framed(payload)));  // neither crashes nor allocates without bound
    }
  }
  std::string payload = made.bytes.substr(facts.size() + 8, made.ends[1] - facts.size() - 8);
  payload[1] = 'x';  // now
  payload[8] = static_cast<char>(0x80);
  const auto negative = ParseInputLog(facts + Framed(payload));
  ASSERT_TRUE(negative.ok());
  EXPECT_EQ(negative->damage.code(), Code::kCorrupt);
  EXPECT_TRUE(negative->steps.empty());
}

// A log of one step, which `note` tells of; and, of two such, the second with another byte where they begin to differ.
std::string LogOfStep(const std::function<void(InputLog&)>& note) {
  std::string bytes;
  InputLog log([&](const std::string& more) { bytes += more; });
  log.Begin(SomeFacts());
  log.BeginStep({.now = Nanos(1)});
  note(log);
  log.EndStep({});
  return bytes;
}
std::string ChangedWhereTheyDiffer(const std::string& one, const std::string& other, char byte) {
  const size_t step = MakeLog(0).ends.front(), payload = step + 8;
  std::string changed = other.substr(payload);
  changed.at(static_cast<size_t>(std::ranges::mismatch(one.substr(payload), changed).in2 - changed.begin())) = byte;
  return other.substr(0, step) + Framed(changed);
}

TEST(InputLog, AnswersThatAreNotKnownAreRefused) {
  const std::string failed = LogOfStep([](InputLog& log) { log.NoteCopy(CopyAnswer::kFailed); });
  const std::string differs = LogOfStep([](InputLog& log) { log.NoteCopy(CopyAnswer::kDiffers); });
  EXPECT_EQ(ParseInputLog(differs)->steps.at(0).copies, std::vector{CopyAnswer::kDiffers});
  EXPECT_EQ(ParseInputLog(ChangedWhereTheyDiffer(failed, differs, 3))->steps.at(0).copies,
            std::vector{CopyAnswer::kFailed});
  const auto unknown = ParseInputLog(ChangedWhereTheyDiffer(failed, differs, 5));
  EXPECT_EQ(unknown->damage.code(), Code::kCorrupt);
  EXPECT_TRUE(unknown->steps.empty());

  const std::string refused = LogOfStep([](InputLog& log) { log.archive()->begins = {Code::kOverloaded}; });
  const std::string internal = LogOfStep([](InputLog& log) { log.archive()->begins = {Code::kInternal}; });
  EXPECT_EQ(ParseInputLog(internal)->steps.at(0).archive->begins, std::vector{Code::kInternal});
  EXPECT_EQ(ParseInputLog(ChangedWhereTheyDiffer(refused, internal, 6))->damage.code(), Code::kCorrupt);
}

TEST(InputLog, SavedSessionsThatNoFileHoldsAreRefused) {
  const auto damage = [](const ArchiveAnswers& answers) {
    const auto log = ParseInputLog(LogOfStep([&](InputLog& one) { *one.archive() = answers; }));
    return log->steps.empty();
  };
  ArchiveAnswers answers{.begins = {Code::kOk}, .ends = {{}}, .headers = {SomeHeader()}};
  EXPECT_FALSE(damage(answers));
  answers.headers[0].kv_tokens = 4;
  EXPECT_TRUE(damage(answers)) << "KV of more tokens than it has";
  answers.headers.clear();
  answers.ends[0].groups.assign(tier::kArchivedKvBlocks, 1);
  EXPECT_FALSE(damage(answers));
  answers.ends[0].groups.push_back(1);
  EXPECT_TRUE(damage(answers)) << "a part of more blocks than one has";
}

TEST(InputLog, FactsOfNoEngineAreRefused) {
  const auto refused = [](auto change) {
    InputFacts facts = SomeFacts();
    change(facts);
    std::string bytes;
    InputLog log([&](const std::string& more) { bytes += more; });
    log.Begin(facts);
    const auto parsed = ParseInputLog(bytes);
    return !parsed.ok() && parsed.status().code() == Code::kInvalid;
  };
  EXPECT_FALSE(refused([](InputFacts&) {}));
  EXPECT_TRUE(refused([](InputFacts& f) { f.slots = 0; }));
  EXPECT_TRUE(refused([](InputFacts& f) { f.slots = 0xFFFFFFFF; }));
  EXPECT_TRUE(refused([](InputFacts& f) { f.host->memory_bytes = uint64_t{1} << 60; }));
  EXPECT_TRUE(refused([](InputFacts& f) { f.vocabulary = 0; }));
  EXPECT_TRUE(refused([](InputFacts& f) { f.layout.shape.block_tokens = 0; }));
  EXPECT_TRUE(refused([](InputFacts& f) { f.layout.groups.clear(); }));
  EXPECT_TRUE(refused([](InputFacts& f) { f.layout.slot_bytes = 0; }));
  EXPECT_TRUE(refused([](InputFacts& f) { f.options.eviction = "none"; }));
  EXPECT_TRUE(refused([](InputFacts& f) { f.options.step_rows = 0; }));
}

}  // namespace
}  // namespace cachalot::engine
