#include "cli/disk_files.h"

#include <string>

#include <fmt/format.h>

namespace cachalot::cli {
namespace {

Result<DiskIo> ParseDiskIo(const std::string& text) {
  if (text == "auto") return DiskIo::kAuto;
  if (text == "pread") return DiskIo::kPread;
  if (text == "io_uring") return DiskIo::kIoUring;
  return Invalid(fmt::format("--disk-io: expected auto, pread or io_uring, got \"{}\"", text));
}

}  // namespace

Result<std::unique_ptr<FileSystem>> FilesFor(const TierOptions& options, const RingOptions& rings) {
  CACHALOT_ASSIGN_OR_RETURN(const DiskIo io, ParseDiskIo(options.disk_io));
  if (options.disk_path.empty()) return DiskFileSystem();
  Result<std::unique_ptr<FileSystem>> files = DiskFileSystemBy(io, rings);
  if (!files.ok()) return files.status().Annotate("--disk-io");
  return files;
}

}  // namespace cachalot::cli
