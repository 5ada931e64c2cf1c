// Clang's thread-safety attributes under our names: which mutex guards what, checked when clang compiles.
// Threads:   they say what may be called holding which mutex.
// Ownership: none.
// Invariant: they mean nothing to g++.
// Cost:      none.
#pragma once

#ifdef __clang__
#define CACHALOT_THREAD_ATTRIBUTE(x) __attribute__((x))
#else
#define CACHALOT_THREAD_ATTRIBUTE(x)
#endif

#define CACHALOT_CAPABILITY(name) CACHALOT_THREAD_ATTRIBUTE(capability(name))
#define CACHALOT_SCOPED_CAPABILITY CACHALOT_THREAD_ATTRIBUTE(scoped_lockable)
#define CACHALOT_GUARDED_BY(mutex) CACHALOT_THREAD_ATTRIBUTE(guarded_by(mutex))
#define CACHALOT_REQUIRES(...) CACHALOT_THREAD_ATTRIBUTE(requires_capability(__VA_ARGS__))
#define CACHALOT_EXCLUDES(...) CACHALOT_THREAD_ATTRIBUTE(locks_excluded(__VA_ARGS__))
#define CACHALOT_ACQUIRE(...) CACHALOT_THREAD_ATTRIBUTE(acquire_capability(__VA_ARGS__))
#define CACHALOT_RELEASE(...) CACHALOT_THREAD_ATTRIBUTE(release_capability(__VA_ARGS__))
#define CACHALOT_NO_THREAD_SAFETY_ANALYSIS CACHALOT_THREAD_ATTRIBUTE(no_thread_safety_analysis)
