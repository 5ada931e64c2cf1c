#include "engine/inquiry.h"

#include <vector>

#include <gtest/gtest.h>

#include "engine/testing/engine_rig.h"
#include "kv/identity.h"

namespace cachalot::engine {
namespace {

Answer Ask(Rig& rig, Inquiry inquiry) {
  StepInput input;
  input.inquiries.push_back(std::move(inquiry));
  const StepOutput out = rig.Step(std::move(input));
  EXPECT_EQ(out.answers.size(), 1u);
  return out.answers.at(0);
}

PrefixProbe ProbeOf(Rig& rig, GenerateRequest request) {
  Inquiry inquiry{InquiryId(1), InquiryKind::kProbe, {}};
  inquiry.requests.push_back(std::move(request));
  return Ask(rig, std::move(inquiry)).probes.at(0);
}

void Finish(Rig& rig, GenerateRequest request) {
  rig.Arrive(std::move(request));
  rig.RunToEnd();
}

TEST(Inquiries, AProbeTellsWhatTheRequestThenHits) {
  Rig rig;
  const std::vector<TokenId> prompt = Tokens(100, 1);
  EXPECT_EQ(ProbeOf(rig, Request(9, prompt, 5)).limit, HitLimit::kNotResident);
  Finish(rig, Request(1, prompt, 5));
  const PrefixProbe all = ProbeOf(rig, Request(9, prompt, 5));
  EXPECT_EQ(all.prompt_tokens, 100u);
  EXPECT_EQ(all.hit_tokens, 99u);
  EXPECT_EQ(all.limit, HitLimit::kLastToken);

  std::vector<TokenId> longer = prompt;
  longer.resize(150, 7);
  const PrefixProbe part = ProbeOf(rig, Request(9, longer, 5));
  EXPECT_EQ(part.limit, HitLimit::kNotResident);
  EXPECT_GE(part.hit_tokens, 99u);
  Finish(rig, Request(2, longer, 5));
  EXPECT_EQ(rig.finishes.at({RequestId(2), 0}).cached_tokens, part.hit_tokens);
}

TEST(Inquiries, ScoredPromptsAndNoCacheSayWhyNothingIsFound) {
  Rig rig;
  Finish(rig, Request(1, Tokens(40, 1), 2));
  GenerateRequest scored = Request(2, Tokens(40, 1), 2);
  scored.prompt_logprobs = 0;
  EXPECT_EQ(ProbeOf(rig, scored).limit, HitLimit::kScored);
  EXPECT_EQ(ProbeOf(rig, scored).hit_tokens, 0u);
  Rig off({.prefix_cache = false});
  Finish(off, Request(1, Tokens(40, 1), 2));
  EXPECT_EQ(ProbeOf(off, Request(2, Tokens(40, 1), 2)).limit, HitLimit::kOff);
}

TEST(Inquiries, AProbeSeesWhatARunningRequestIsComputing) {
  Rig rig({.prefill_chunk = 16});
  rig.Arrive(Request(1, Tokens(100, 1), 5));
  const PrefixProbe probe = ProbeOf(rig, Request(2, Tokens(100, 1), 5));
  EXPECT_EQ(probe.limit, HitLimit::kAwaited);
  EXPECT_EQ(probe.awaited_tokens, 99u);
  EXPECT_LT(probe.hit_tokens, 99u);
  EXPECT_EQ(rig.Arrive(Request(2, Tokens(100, 1), 5)).stats.awaiting_requests, 1u);
  rig.RunToEnd();
  EXPECT_EQ(rig.Step().stats.awaiting_requests, 0u);
}

TEST(Inquiries, AProbeSeesNothingOfOtherSaltsButWhatIsPublic) {
  Rig rig;
  const CacheSalt mine{1, 2}, other{1, 3};
  GenerateRequest request = Request(1, Tokens(100, 1), 5);
  request.scope = {mine, 48};
  Finish(rig, request);
  EXPECT_EQ(ProbeOf(rig, request).hit_tokens, 99u);
  request.scope = {other, 48};
  const PrefixProbe probe = ProbeOf(rig, request);
  EXPECT_EQ(probe.hit_tokens, 48u);
  EXPECT_EQ(probe.public_tokens, 48u);
  EXPECT_EQ(probe.limit, HitLimit::kNotResident);
  request.scope = {other, 0};
  EXPECT_EQ(ProbeOf(rig, request).hit_tokens, 0u);
}

TEST(Inquiries, SlidingAttentionGoesOnFromResumePointsOnly) {
  exec::FakeOptions model;
  model.windows = {0, 32};
  Rig rig({.prefill_chunk = 16}, model, 20);  // too small for the blocks that have left their window
  Finish(rig, Request(1, Tokens(200, 1), 5));
  std::vector<TokenId> branch = Tokens(200, 1);
  branch.resize(40);
  branch.resize(60, 7);
  const PrefixProbe probe = ProbeOf(rig, Request(2, branch, 5));
  EXPECT_EQ(probe.limit, HitLimit::kResumePoint);
  EXPECT_EQ(probe.hit_tokens, 0u);
}

TEST(Inquiries, ClearEvictsWhatNobodyUses) {
  Rig rig;
  Finish(rig, Request(1, Tokens(100, 1), 5));
  rig.Arrive(Request(2, Tokens(60, 2), 50));
  const EngineStats before = rig.Step().stats;
  ASSERT_GT(before.idle_slots, 0u);
  StepInput input;
  input.inquiries.push_back({InquiryId(5), InquiryKind::kClear, {}});
  const StepOutput out = rig.Step(std::move(input));
  EXPECT_EQ(out.answers.at(0).id, InquiryId(5));
  EXPECT_EQ(out.answers.at(0).evicted_slots, before.idle_slots);
  EXPECT_EQ(out.stats.idle_slots, 0u);
  EXPECT_EQ(ProbeOf(rig, Request(9, Tokens(100, 1), 5)).hit_tokens, 0u);
  rig.RunToEnd();
  EXPECT_EQ((rig.outputs[{RequestId(2), 0}]), Expected(rig.executor(), Request(2, Tokens(60, 2), 50), 0));
  EXPECT_GT(Ask(rig, {InquiryId(6), InquiryKind::kClear, {}}).evicted_slots, 0u);
  EXPECT_EQ(rig.Step().stats.free_slots, rig.Step().stats.total_slots);
}

TEST(Inquiries, TheOverviewCountsWhatIsThere) {
  Rig rig;
  Finish(rig, Request(1, Tokens(100, 1), 5));
  const Answer idle = Ask(rig, {InquiryId(1), InquiryKind::kOverview, {}});
  EXPECT_EQ(idle.overview.block_tokens, 16u);
  EXPECT_EQ(idle.overview.ledger.live_bytes, 0u);
  EXPECT_GT(idle.overview.ledger.idle_bytes, 0u);
  EXPECT_EQ(idle.overview.sequences, 0u);
  EXPECT_EQ(idle.overview.sequence_tokens, 0u);
  EXPECT_EQ(idle.overview.indexed_tokens, 104u);  // the last token of the answer never ran
  EXPECT_EQ(idle.overview.index_nodes, 1u + 7);   // the root too
  GenerateRequest forked = Request(2, Tokens(30, 2), 20);
  forked.n = 3;
  rig.Arrive(forked);
  const Answer busy = Ask(rig, {InquiryId(2), InquiryKind::kOverview, {}});
  EXPECT_EQ(busy.overview.sequences, 3u);
  EXPECT_EQ(busy.overview.sequence_tokens, 3 * 31u);
  const KvLedger& ledger = busy.overview.ledger;
  EXPECT_GT(ledger.shared_bytes, 0u);
  EXPECT_GE(ledger.live_bytes, ledger.shared_bytes);
  EXPECT_EQ(ledger.Sum(), ledger.total_bytes);
}

TEST(Inquiries, AProbeNamesTheLastBlockFoundByItsKey) {
  Rig rig;
  const std::vector<TokenId> prompt = Tokens(100, 1);
  EXPECT_EQ(ProbeOf(rig, Request(9, prompt, 5)).key, std::nullopt);
  Finish(rig, Request(1, prompt, 5));
  const std::vector<Digest> keys = kv::BlockKeys({}, {}, 16, prompt);
  EXPECT_EQ(ProbeOf(rig, Request(9, prompt, 5)).key, keys.at(5));
  std::vector<TokenId> other = prompt;
  other[40] ^= 1;
  EXPECT_EQ(ProbeOf(rig, Request(9, other, 5)).key, keys.at(1));
}

}  // namespace
}  // namespace cachalot::engine
