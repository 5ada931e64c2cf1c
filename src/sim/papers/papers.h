// Papers: figures of the literature that one command each reproduces, by the server's own code.
// Threads:   pure functions.
// Ownership: none.
// Invariant: equal inputs give equal results on one build.
// Cost:      up to ten seconds.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "sim/papers/paper.h"

namespace cachalot::sim {

std::span<const Paper> Papers();
// kInvalid, with the names, for any other.
Result<const Paper*> FindPaper(std::string_view name);
// kInvalid where it needs a trace and there is none.
Result<PaperResult> RunPaper(const Paper& paper, const PaperInput& input);

// Each in its own file.
Result<PaperResult> PagedAttention(const PaperInput& input);
Result<PaperResult> SgLang(const PaperInput& input);
Result<PaperResult> Mooncake(const PaperInput& input);
Result<PaperResult> VllmWatermark(const PaperInput& input);
Result<PaperResult> LightLlm(const PaperInput& input);
Result<PaperResult> BlockSize(const PaperInput& input);
Result<PaperResult> Survivors(const PaperInput& input);
Result<PaperResult> Concur(const PaperInput& input);
Result<PaperResult> Cake(const PaperInput& input);

}  // namespace cachalot::sim
