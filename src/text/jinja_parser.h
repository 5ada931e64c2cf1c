// ParseTemplate makes the syntax tree of a template.
// Threads:   pure function.
// Ownership: the tree owns everything; the source may go.
// Invariant: the grammar is Jinja 3.1's with loopcontrols and {% generation %}; names are not resolved yet.
// Cost:      linear in the source; recursion is bounded by kMaxExprDepth and kMaxBlockDepth.
#pragma once

#include <string_view>

#include "base/status.h"
#include "text/jinja_ast.h"

namespace cachalot::text::jinja {

// kInvalid as "line N: reason".
Result<Template> ParseTemplate(std::string_view source);

}  // namespace cachalot::text::jinja
