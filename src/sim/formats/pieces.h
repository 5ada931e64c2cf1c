// PieceWords cuts text into about as many pieces as a tokenizer makes of it, where there is none.
// Threads:   a pure function.
// Ownership: none.
// Invariant: equal pieces are equal words. Texts that begin alike have the same words up to the piece in which they
//            part.
// Cost:      linear in the text.
//
// A piece is a word with the blank before it, of at most eight letters; up to three digits; a run of blanks; or one
// other character. Of English prose that makes one piece to about 4.5 bytes.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace cachalot::sim {

std::vector<uint32_t> PieceWords(std::string_view text);

}  // namespace cachalot::sim
