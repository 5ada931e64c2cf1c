// ResolveNames binds every variable, filter and test of a parsed template.
// Threads:   pure function on the tree.
// Ownership: annotates the tree in place.
// Invariant: scopes are those that Jinja's compiler makes: what a name means is decided by the text of the template,
//            not by what ran before (so a variable that is set later in a body is unset, not inherited, before that).
// Cost:      linear in the tree, times the nesting of loops.
#pragma once

#include "base/status.h"
#include "text/jinja_ast.h"

namespace cachalot::text::jinja {

// kInvalid as "line N: reason" for unknown filters and tests, except inside if and inline-if, where they fail only
// when they run.
Status ResolveNames(Template* tree);

}  // namespace cachalot::text::jinja
