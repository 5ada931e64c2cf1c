// Canonical composition (Unicode NFC), which the published rules of Qwen2's tokenizer apply before splitting.
// Threads:   pure functions over tables that are made once.
// Ownership: none.
// Invariant: equal to Hugging Face tokenizers 0.23.3, whose tables are of Unicode 9.0: NFC but for a few younger
//            characters (listed in tools/make_unicode_table.py); surrogates that lenient decoding let through stay.
// Cost:      linear (O(n log n) in a run of combining marks); text that is already composed is only scanned.
#pragma once

#include <string>
#include <string_view>

namespace cachalot::text {

// True when the quick check proves that the text is its own NFC form.
bool IsSurelyNfc(std::string_view text);

std::string ToNfc(std::string_view text);

}  // namespace cachalot::text
