#include "tier/testing/session_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>

namespace cachalot::tier {
namespace {

SessionKey RandomKey(SplitMix64& random) {
  return {std::string(1, static_cast<char>('a' + random.Below(3))), std::to_string(random.Below(4))};
}

std::vector<TokenId> RandomTokens(SplitMix64& random) {
  std::vector<TokenId> tokens(random.Below(30));
  for (TokenId& token : tokens) token = static_cast<TokenId>(random());
  return tokens;
}

StoredSession RandomSession(const SessionKey& key, SplitMix64& random) {
  StoredSession session;
  session.key = key;
  session.identity.fill(static_cast<uint8_t>(random()));
  session.scope = {{random(), random()}, random.Below(100)};
  session.tokens = RandomTokens(random);
  session.created = random();
  session.last_used = random();
  session.ttl_seconds = random.Below(100);
  session.pinned = random.Below(2) == 0;
  session.suspended = random.Below(2) == 0;
  return session;
}

void ChangeOne(SessionJournal& journal, SessionTable& table, SplitMix64& random) {
  const SessionKey key = RandomKey(random);
  const auto found = table.find(key);
  const uint64_t choice = random.Below(10);
  if (choice < 3 || found == table.end()) {
    table[key] = RandomSession(key, random);
    ASSERT_TRUE(journal.Put(table[key]).ok());
  } else if (choice < 7) {
    std::vector<TokenId>& tokens = found->second.tokens;
    const uint64_t from = random.Below(2) == 0 ? tokens.size() : random.Below(tokens.size() + 1);
    const std::vector<TokenId> more = RandomTokens(random);
    found->second.last_used = random();
    ASSERT_TRUE(journal.Extend(key, from, more, found->second.last_used).ok());
    tokens.resize(from);
    tokens.insert(tokens.end(), more.begin(), more.end());
  } else if (choice == 7) {
    found->second.last_used = random();
    ASSERT_TRUE(journal.Touch(key, found->second.last_used).ok());
  } else if (choice == 8) {
    found->second.pinned = random.Below(2) == 0;
    found->second.suspended = random.Below(2) == 0;
    ASSERT_TRUE(journal.SetHeld(key, found->second.pinned, found->second.suspended).ok());
  } else {
    table.erase(found);
    ASSERT_TRUE(journal.Delete(key).ok());
  }
}

}  // namespace

SessionTable TableOf(const std::vector<StoredSession>& sessions) {
  SessionTable table;
  for (const StoredSession& session : sessions) table[session.key] = session;
  return table;
}

void SessionModel::ChangeBoth(SessionJournal& journal, SplitMix64& random) {
  SessionTable table = moments_.back();
  const uint64_t choice = random.Below(60);
  if (choice == 0) {
    table.clear();
    ASSERT_TRUE(journal.ClearAll().ok());
  } else if (choice <= 2) {
    const std::string owner = RandomKey(random).owner;
    std::erase_if(table, [&](const auto& entry) { return entry.first.owner == owner; });
    ASSERT_TRUE(journal.ClearOwner(owner).ok());
  } else {
    ChangeOne(journal, table, random);
  }
  moments_.push_back(std::move(table));
}

bool SessionModel::Recovered(const std::vector<StoredSession>& sessions) {
  const SessionTable table = TableOf(sessions);
  if (std::ranges::find(moments_, table) == moments_.end()) return false;
  moments_ = {table};
  return true;
}

}  // namespace cachalot::tier
