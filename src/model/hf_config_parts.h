// The parts of a config.json that differ between architectures: which layers do what, and what each part holds.
// Threads:   pure functions of their arguments.
// Ownership: none.
// Invariant: none of them guesses: what an architecture does not say is an error.
// Cost:      linear in the number of layers.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "model/hf_config.h"
#include "model/hf_config_fields.h"

namespace cachalot::model {

// Sanity limits; the largest models of today stay at least four times below them.
inline constexpr uint64_t kMaxHfLayers = 1024;
inline constexpr uint64_t kMaxHfWidth = 1 << 20;
inline constexpr uint64_t kMaxHfHeads = 1 << 14;
inline constexpr uint64_t kMaxHfHeadDim = 1 << 12;
inline constexpr uint64_t kMaxHfRank = 1 << 16;
inline constexpr uint64_t kMaxHfFfnWidth = 1 << 22;
inline constexpr uint64_t kMaxHfExperts = 1 << 14;
inline constexpr uint64_t kMaxHfVocabulary = 1 << 24;
inline constexpr uint64_t kMaxHfContext = uint64_t{1} << 31;

// Which layers see only a window, where the config does not list them.
enum class HfWindows : uint8_t {
  kNone,        // a window in the config is not used
  kEveryLayer,  // where the config has a window
  kQwen,        // from max_window_layers on, if use_sliding_window
  kPeriod,      // all but each period-th
};

enum class HfRecurrent : uint8_t { kNone, kMamba, kMamba2, kGatedDelta, kChannelDelta, kLightning, kShortConvolution };

struct HfArchitecture {
  std::string_view model_type;
  HfWindows windows = HfWindows::kNone;
  uint32_t period = 0;  // of kPeriod; of full attention among recurrent layers
  HfRecurrent recurrent = HfRecurrent::kNone;
  bool latent = false;             // attention keeps a compressed latent (MLA)
  bool gated = true;               // a feed-forward has three matrices, else two
  bool tied = false;               // the output is the embedding, unless the config says otherwise
  bool learned_positions = false;  // there is an embedding of positions
  bool routed = false;             // each feed-forward has experts
};

enum class HfFeed : uint8_t { kNone, kDense, kSparse, kBoth };

// What a layer consists of.
struct HfLayerKind {
  bool attention = true;
  bool sliding = false;
  bool recurrent = false;
  bool shares_kv = false;
  HfFeed feed = HfFeed::kDense;
};

struct HfSizes {
  uint64_t width = 0;
  uint64_t layers = 0;
  uint64_t context_tokens = 0;  // 0: the architecture has no limit
};

Result<uint64_t> ReadLayerCount(const HfFields& fields, const HfArchitecture& architecture);
Result<std::vector<HfLayerKind>> ReadLayerKinds(const HfFields& fields, const HfArchitecture& architecture,
                                                const HfSizes& sizes);
Result<HfAttention> ReadAttention(const HfFields& fields, const HfArchitecture& architecture, const HfSizes& sizes,
                                  const HfLayerKind& kind);
Result<HfRecurrence> ReadRecurrence(const HfFields& fields, const HfArchitecture& architecture, const HfSizes& sizes);
Result<HfFeedForward> ReadFeedForward(const HfFields& fields, const HfArchitecture& architecture, const HfSizes& sizes,
                                      const HfLayerKind& kind, uint64_t layer);

}  // namespace cachalot::model
