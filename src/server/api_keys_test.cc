#include "server/api_keys.h"

#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "server/cache_salt.h"

namespace cachalot::server {
namespace {

// printf %s KEY | sha256sum
constexpr std::string_view kHashOfSesame = "41ef4bb0b23661e66301aac36066912dac037827b4ae63a7b1165a5aa93ed4eb";
constexpr std::string_view kHashOfAbc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

std::optional<CacheSalt> SaltOf(const ApiKeys& keys, std::string_view authorization) {
  const std::optional<Sender> sender = keys.SenderOf(authorization);
  return sender ? std::optional(sender->salt) : std::nullopt;
}

std::string ProblemOf(std::string_view text) {
  const Result<ApiKeys> keys = ApiKeys::Parse(text, "keys.txt");
  return keys.ok() ? "" : std::string(keys.status().message());
}

TEST(ApiKeys, AKeyOfTheFileIsItsTenants) {
  const ApiKeys keys =
      ApiKeys::Parse(fmt::format("# keys\n\n  alice\t{}\r\nbob {}\n", kHashOfAbc, kHashOfSesame), "keys.txt").value();
  EXPECT_TRUE(keys.required());
  EXPECT_EQ(SaltOf(keys, "Bearer abc"), TenantSalt("alice"));
  EXPECT_EQ(SaltOf(keys, "Bearer open sesame"), TenantSalt("bob"));
  EXPECT_EQ(SaltOf(keys, "bEARER abc"), TenantSalt("alice"));
  EXPECT_EQ(keys.SaltOfTenant("bob"), TenantSalt("bob"));
  for (const char* wrong : {"", "abc", "Bearer", "Bearer ", "Bearer ab", "Bearer abcd", "Bearer abc ", "Basic abc"}) {
    EXPECT_EQ(SaltOf(keys, wrong), std::nullopt) << wrong;
  }
  EXPECT_EQ(SaltOf(keys, "Bearer " + std::string(kHashOfAbc)), std::nullopt);
  EXPECT_EQ(keys.SaltOfTenant("carol"), std::nullopt);
  EXPECT_EQ(keys.SaltOfTenant(""), std::nullopt);
}

TEST(ApiKeys, ATenantMayHaveSeveralKeys) {
  const ApiKeys keys = ApiKeys::Parse(fmt::format("a {}\na {}", kHashOfAbc, kHashOfSesame), "keys.txt").value();
  EXPECT_EQ(SaltOf(keys, "Bearer abc"), SaltOf(keys, "Bearer open sesame"));
  EXPECT_TRUE(SaltOf(keys, "Bearer abc").has_value());
}

TEST(ApiKeys, WithoutKeysEverybodyIsServedAndNobodyIsTheAdmin) {
  const ApiKeys keys;
  EXPECT_FALSE(keys.required());
  EXPECT_EQ(SaltOf(keys, ""), CacheSalt{});
  EXPECT_FALSE(keys.has_admin());
  EXPECT_FALSE(keys.IsAdmin(""));
  EXPECT_FALSE(keys.IsAdmin("Bearer "));
}

TEST(ApiKeys, TheSingleKeyHasNoSaltAndTheAdminsIsNoClients) {
  ApiKeys keys;
  keys.AddSingle("");
  keys.SetAdmin("");
  EXPECT_FALSE(keys.required());
  EXPECT_FALSE(keys.has_admin());
  keys.AddSingle("one");
  keys.SetAdmin("root");
  EXPECT_EQ(SaltOf(keys, "Bearer one"), CacheSalt{});
  EXPECT_EQ(SaltOf(keys, "Bearer root"), std::nullopt);
  EXPECT_TRUE(keys.IsAdmin("Bearer root"));
  EXPECT_FALSE(keys.IsAdmin("Bearer one"));
  EXPECT_EQ(keys.SaltOfTenant(""), std::nullopt);
}

TEST(ApiKeys, EveryProblemNamesItsLine) {
  const std::string good = fmt::format("a {}\n", kHashOfAbc);
  EXPECT_EQ(ProblemOf(good), "");
  EXPECT_EQ(ProblemOf(""), "keys.txt: has no key; nobody could use the server");
  EXPECT_EQ(ProblemOf("# nothing\n"), "keys.txt: has no key; nobody could use the server");
  EXPECT_EQ(ProblemOf(good + "bob\n"), "keys.txt:2: expected a tenant's name and the SHA-256 of its key");
  EXPECT_EQ(ProblemOf(good + "\n" + good), "keys.txt:3: the key of line 1 once more");
  EXPECT_EQ(ProblemOf(std::string(129, 'n') + good),
            "keys.txt:1: a tenant's name is at most 128 printable ASCII characters");
  EXPECT_EQ(ProblemOf("\xff " + good.substr(2)),
            "keys.txt:1: a tenant's name is at most 128 printable ASCII characters");
  const std::string hash(kHashOfAbc);
  for (const std::string& wrong : {hash.substr(1), hash + "0", hash.substr(1) + "g"}) {
    EXPECT_NE(ProblemOf("bob " + wrong).find("64 hexadecimal digits"), std::string::npos) << wrong;
  }
}

TEST(ApiKeys, ATenantsTermsTakeThePlaceOfTheDefaults) {
  TenantTerms defaults{.request = {.output_tokens = 100}, .tenant = {.sequences = 8}, .queue = 5};
  ApiKeys keys = ApiKeys::Parse(fmt::format("a {} weight=3  tenant-sequences=2\t request-output=0\nb {}\n", kHashOfAbc,
                                            kHashOfSesame),
                                "keys.txt", defaults)
                     .value();
  keys.AddSingle("one");
  const std::vector<TenantTerms> terms = keys.AllTerms();
  ASSERT_EQ(terms.size(), 3u);
  EXPECT_EQ(keys.SenderOf("Bearer abc")->tenant, TenantId(0));
  EXPECT_EQ(keys.SenderOf("Bearer open sesame")->tenant, TenantId(1));
  EXPECT_EQ(keys.SenderOf("Bearer one")->tenant, TenantId(2));
  EXPECT_EQ(terms[0].weight, 3u);
  EXPECT_EQ(terms[0].tenant.sequences, 2u);
  EXPECT_EQ(terms[0].request.output_tokens, 0u);
  EXPECT_EQ(terms[0].queue, 5u);
  for (const size_t other : {1u, 2u}) {
    EXPECT_EQ(terms[other].weight, 1u);
    EXPECT_EQ(terms[other].tenant.sequences, 8u);
    EXPECT_EQ(terms[other].request.output_tokens, 100u);
  }
  EXPECT_TRUE(ApiKeys().AllTerms().empty());
}

TEST(ApiKeys, EveryKeyOfATenantMayNameTermsButEachTermOnce) {
  const std::string first = fmt::format("a {} weight=2\n", kHashOfAbc), second = fmt::format("a {}", kHashOfSesame);
  const ApiKeys keys = ApiKeys::Parse(first + second + " tenant-queue=7", "keys.txt").value();
  ASSERT_EQ(keys.AllTerms().size(), 1u);
  EXPECT_EQ(keys.AllTerms()[0].weight, 2u);
  EXPECT_EQ(keys.AllTerms()[0].queue, 7u);
  EXPECT_EQ(ProblemOf(first + second + " weight=2"), "keys.txt:2: the weight of a stands in line 1 already");
  EXPECT_EQ(ProblemOf(second + " weight=2 weight=2"), "keys.txt:1: the weight of a stands in line 1 already");
}

TEST(ApiKeys, AWrongTermIsNamedByItsPlaceAndNotRepeated) {
  const std::string good = fmt::format("a {} ", kHashOfAbc);
  for (const char* wrong : {"secret", "secret=1", "=1", "Weight=1", "weight", "weight =1"}) {
    const std::string problem = ProblemOf(good + "tenant-blocks=1 " + wrong);
    EXPECT_NE(problem.find("item 2 after the hash"), std::string::npos) << wrong;
    EXPECT_NE(problem.find("weight, request-context, "), std::string::npos) << problem;
    EXPECT_EQ(problem.find("secret"), std::string::npos) << problem;
  }
  for (const char* wrong : {"weight=0", "weight=1001", "weight=", "weight=-1", "weight=1x", "weight=1.5"}) {
    EXPECT_EQ(ProblemOf(good + wrong), "keys.txt:1: weight is not a whole number from 1 to 1000") << wrong;
  }
  EXPECT_EQ(ProblemOf(good + "tenant-blocks=99999999999999"),
            "keys.txt:1: tenant-blocks is not a whole number from 0 to 1000000000000");
}

TEST(ApiKeys, AKeyInThePlaceOfItsHashIsNotRepeated) {
  const std::string problem = ProblemOf("bob sk-very-secret\n");
  EXPECT_EQ(problem.find("secret"), std::string::npos) << problem;
  EXPECT_NE(problem.find("come 14 characters"), std::string::npos) << problem;
}

TEST(CacheSalt, DiffersWithEveryPartAndIsNeverZero) {
  const CacheSalt a = TenantSalt("a"), b = TenantSalt("b");
  const std::vector<CacheSalt> salts = {CacheSalt{},
                                        a,
                                        b,
                                        TenantSalt(""),
                                        NarrowedSalt({}, "a"),
                                        NarrowedSalt({}, ""),
                                        NarrowedSalt(a, ""),
                                        NarrowedSalt(a, "a"),
                                        NarrowedSalt(b, "a"),
                                        NarrowedSalt({a.high, b.low}, "a"),
                                        NarrowedSalt({a.low, a.high}, "a"),
                                        NarrowedSalt(NarrowedSalt(a, "a"), "a")};
  for (size_t i = 0; i < salts.size(); ++i) {
    for (size_t j = 0; j < i; ++j) EXPECT_NE(salts[i], salts[j]) << i << " " << j;
  }
  EXPECT_EQ(NarrowedSalt(a, "x"), NarrowedSalt(a, "x"));
}

}  // namespace
}  // namespace cachalot::server
