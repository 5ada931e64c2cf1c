#include "server/recording_generator.h"

#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/json.h"
#include "base/testing/fault_file_system.h"
#include "server/testing/fake_generator.h"

namespace cachalot::server {
namespace {

class RecordingGeneratorTest : public testing::Test {
 protected:
  RecordingGeneratorTest() {
    FakeGenerator::Options options;
    options.answer = [](const engine::GenerateRequest&, uint32_t choice) {
      return std::vector<TokenId>(2 + choice, 5);
    };
    options.automatic = false;
    fake_ = std::make_unique<FakeGenerator>(std::move(options));
    record_ = engine::RequestRecord::Create(files_, "/record", 16, clock_.Now()).value();
    recorder_ = std::make_unique<RecordingGenerator>(*fake_, *record_, clock_, metrics_);
    recorder_->Start([this](engine::StepOutput output) { told_ += output.tokens.size(); });
  }

  void Submit(uint64_t id, uint32_t n = 1) {
    engine::GenerateRequest request;
    request.id = RequestId(id);
    request.prompt = {1, 2, 3};
    request.n = n;
    request.max_tokens = 3;
    recorder_->Submit(std::move(request));
  }
  void Step() {
    clock_.Advance(std::chrono::seconds(1));
    fake_->Step();
  }
  // Without the header.
  std::vector<Json> Lines() {
    static_cast<void>(record_->Close());
    const std::vector<std::byte> bytes = files_.Contents("/record");
    std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    std::vector<Json> lines;
    for (size_t end; (end = text.find('\n')) != std::string_view::npos; text.remove_prefix(end + 1)) {
      lines.push_back(ParseJson(text.substr(0, end)).value());
    }
    lines.erase(lines.begin());
    return lines;
  }

  FaultFileSystem files_;
  ManualClock clock_;
  Metrics metrics_;
  std::unique_ptr<FakeGenerator> fake_;
  std::unique_ptr<engine::RequestRecord> record_;
  std::unique_ptr<RecordingGenerator> recorder_;
  uint64_t told_ = 0;
};

TEST_F(RecordingGeneratorTest, ARequestIsRecordedOnceItsLastChoiceHasEnded) {
  Submit(1, 2);
  for (int i = 0; i < 8; ++i) Step();
  recorder_->Stop();
  EXPECT_GT(told_, 0u);  // as without it
  const std::vector<Json> lines = Lines();
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(*lines[0].Find("n"), Json(2));
  EXPECT_EQ(*lines[0].Find("input_length"), Json(3));
  EXPECT_EQ(lines[0].Find("output_tags")->AsArray()->size(), 2u);
  EXPECT_EQ(*lines[0].Find("output_length"), Json(3));
  EXPECT_EQ(lines[0].Find("ttft_seconds")->AsNumber(), 1.0);
  EXPECT_GT(lines[0].Find("e2e_seconds")->AsNumber(), 1.0);
}

TEST_F(RecordingGeneratorTest, SoAreThoseThatWereRefusedOrCancelled) {
  fake_->RejectWith({.reason = engine::RejectReason::kQueueFull, .message = "full"});
  Submit(1);
  Step();
  engine::StepOutput cancelled;
  Submit(2);
  cancelled.finishes.push_back({RequestId(2), 0, engine::FinishReason::kCancelled});
  fake_->Emit(std::move(cancelled));
  recorder_->Stop();
  const std::vector<Json> lines = Lines();
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(*lines[0].Find("outcome"), Json("queue_full"));
  EXPECT_EQ(*lines[1].Find("outcome"), Json("cancelled"));
  for (const Json& line : lines) EXPECT_EQ(*line.Find("output_length"), Json(0));
}

TEST_F(RecordingGeneratorTest, LostLinesAreAMetric) {
  files_.Fail({.op = FileOp::kWrite, .nth = 1, .onwards = true, .code = Code::kOverloaded});
  Submit(1);
  for (int i = 0; i < 8; ++i) Step();
  static_cast<void>(record_->Close());  // until it has failed
  EXPECT_GT(record_->lost(), 0u);
  fake_->RejectWith({.reason = engine::RejectReason::kQueueFull, .message = "full"});
  Submit(2);
  Step();
  recorder_->Stop();
  EXPECT_NE(metrics_.Exposition().find("\ncachalot_records_lost_total"), std::string::npos);
  EXPECT_EQ(metrics_.Exposition().find("\ncachalot_records_lost_total 0"), std::string::npos);
}

}  // namespace
}  // namespace cachalot::server
