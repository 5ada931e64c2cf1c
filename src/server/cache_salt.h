// The salts that keep tenants apart in the prefix cache: a tenant's own, and what a request's cache_salt makes of it.
// Threads:   pure functions.
// Ownership: none.
// Invariant: different inputs give different salts (SHA-256, cut to 128 bits, over length-prefixed fields with a domain
//            of their own), equal ones the same in every process. None is zero, the salt of those who have none.
// Cost:      one SHA-256 of the input.
#pragma once

#include <string_view>

#include "base/prefix_scope.h"

namespace cachalot::server {

CacheSalt TenantSalt(std::string_view tenant);
CacheSalt NarrowedSalt(const CacheSalt& salt, std::string_view cache_salt);

}  // namespace cachalot::server
