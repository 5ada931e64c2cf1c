#include "base/memory_info.h"

#include <sched.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>
#include <string_view>
#include <vector>

#include "base/file.h"

namespace cachalot {
namespace {

constexpr uint64_t kFileLimitBytes = 1 << 20;

std::optional<std::string> ReadText(const std::string& path) {
  Result<std::string> text = ReadFile(path, kFileLimitBytes);
  if (!text.ok()) return std::nullopt;
  return std::move(text).value();
}

std::string_view NextLine(std::string_view* text) {
  const size_t end = std::min(text->find('\n'), text->size());
  const std::string_view line = text->substr(0, end);
  text->remove_prefix(std::min(end + 1, text->size()));
  return line;
}

// The number at the beginning of the text, after spaces.
std::optional<uint64_t> LeadingNumber(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;
  return value;
}

std::optional<uint64_t> ReadNumber(const std::string& path) {
  const std::optional<std::string> text = ReadText(path);
  return text ? LeadingNumber(*text) : std::nullopt;
}

// The number after `key` on the line that begins with it.
std::optional<uint64_t> NumberOfKey(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    const std::string_view line = NextLine(&text);
    if (line.starts_with(key)) return LeadingNumber(line.substr(key.size()));
  }
  return std::nullopt;
}

// The path of this process's group in /proc/self/cgroup: of version 2 when `controller` is empty.
std::optional<std::string> GroupPath(const std::string& root, std::string_view controller) {
  const std::optional<std::string> text = ReadText(root + "/proc/self/cgroup");
  std::string_view rest = text ? std::string_view(*text) : std::string_view();
  while (!rest.empty()) {
    const std::string_view line = NextLine(&rest);  // hierarchy:controller,controller:path
    const size_t first = line.find(':');
    const size_t second = first == std::string_view::npos ? first : line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    std::string_view controllers = line.substr(first + 1, second - first - 1);
    const std::string path(line.substr(second + 1));
    if (controller.empty() && controllers.empty()) return path;
    while (!controllers.empty() && !controller.empty()) {
      const size_t comma = std::min(controllers.find(','), controllers.size());
      if (controllers.substr(0, comma) == controller) return path;
      controllers.remove_prefix(std::min(comma + 1, controllers.size()));
    }
  }
  return std::nullopt;
}

// The folders of the group and of all its parents. Inside a container the path may be the host's, of which only the
// top is mounted; folders that are not there limit nothing.
std::vector<std::string> GroupFolders(const std::string& root, std::string_view controller) {
  const std::string mount =
      root + "/sys/fs/cgroup" + (controller.empty() ? std::string() : "/" + std::string(controller));
  std::vector<std::string> folders;
  std::string path = GroupPath(root, controller).value_or("/");
  while (!path.empty() && path != "/") {
    folders.push_back(mount + path);
    path.resize(std::min(path.rfind('/'), path.size()));
  }
  folders.push_back(mount);
  return folders;
}

struct GroupFiles {
  const char* controller;
  const char* limit;
  const char* usage;
  const char* inactive_key;  // in memory.stat, children included
  const char* active_key;
};

constexpr GroupFiles kVersion2 = {"", "/memory.max", "/memory.current", "inactive_file ", "active_file "};
constexpr GroupFiles kVersion1 = {"memory", "/memory.limit_in_bytes", "/memory.usage_in_bytes", "total_inactive_file ",
                                  "total_active_file "};

void ApplyGroupLimits(const std::string& root, const GroupFiles& files, uint64_t machine_bytes, MemoryInfo* info) {
  for (const std::string& folder : GroupFolders(root, files.controller)) {
    const std::optional<uint64_t> read = ReadNumber(folder + files.limit);  // "max" is no number
    if (!read || *read >= machine_bytes) continue;
    const uint64_t limit = *read;
    const uint64_t usage = ReadNumber(folder + files.usage).value_or(0);
    const std::string stat = ReadText(folder + "/memory.stat").value_or("");
    const uint64_t cache =
        NumberOfKey(stat, files.inactive_key).value_or(0) + NumberOfKey(stat, files.active_key).value_or(0);
    const uint64_t claimed = usage - std::min(usage, cache);
    const uint64_t available = limit - std::min(limit, claimed);
    info->total_bytes = std::min(info->total_bytes, limit);
    if (available < info->available_bytes) {
      info->available_bytes = available;
      info->limited_by_cgroup = true;
    }
  }
}

// Whole processors that a quota allows.
uint32_t QuotaCpus(uint64_t quota_us, uint64_t period_us) {
  if (period_us == 0) return std::numeric_limits<uint32_t>::max();
  const uint64_t cpus = std::min<uint64_t>(quota_us / period_us, std::numeric_limits<uint32_t>::max());
  return std::max<uint32_t>(1, static_cast<uint32_t>(cpus));
}

uint32_t AffinityCpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof(set), &set) != 0) return 1;
  return std::max<uint32_t>(1, static_cast<uint32_t>(CPU_COUNT(&set)));
}

}  // namespace

Result<MemoryInfo> ReadMemoryInfo(const std::string& root) {
  const std::string path = root + "/proc/meminfo";
  CACHALOT_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kFileLimitBytes));
  const std::optional<uint64_t> total_kib = NumberOfKey(text, "MemTotal:");
  const std::optional<uint64_t> available_kib = NumberOfKey(text, "MemAvailable:");
  if (!total_kib || !available_kib) return Unavailable(path + " has no MemTotal or no MemAvailable line");
  MemoryInfo info{*total_kib << 10, std::min(*available_kib, *total_kib) << 10, false};
  const uint64_t machine_bytes = info.total_bytes;
  ApplyGroupLimits(root, kVersion2, machine_bytes, &info);
  ApplyGroupLimits(root, kVersion1, machine_bytes, &info);
  info.available_bytes = std::min(info.available_bytes, info.total_bytes);
  return info;
}

std::string ProcessorName(const std::string& root) {
  constexpr std::string_view kKey = "model name";
  constexpr uint64_t kMostBytes = 16 << 20;  // some KiB per processor
  const Result<std::string> text = ReadFile(root + "/proc/cpuinfo", kMostBytes);
  if (!text.ok()) return "";
  for (std::string_view left = *text; !left.empty();) {
    const std::string_view line = NextLine(&left);
    const size_t name = line.find_first_not_of(" \t", std::min(line.find(':'), line.size() - 1) + 1);
    if (line.starts_with(kKey) && name != std::string_view::npos) return std::string(line.substr(name));
  }
  return "";
}

uint32_t UsableCpus(const std::string& root) {
  uint32_t cpus = AffinityCpus();
  for (const std::string& folder : GroupFolders(root, "")) {
    const std::string text = ReadText(folder + "/cpu.max").value_or("");  // "quota period" or "max period"
    const std::optional<uint64_t> quota_us = LeadingNumber(text);
    const size_t space = text.find(' ');
    if (!quota_us || space == std::string::npos) continue;
    cpus = std::min(cpus, QuotaCpus(*quota_us, LeadingNumber(text.substr(space)).value_or(0)));
  }
  for (const std::string& folder : GroupFolders(root, "cpu")) {
    const std::optional<uint64_t> quota_us = ReadNumber(folder + "/cpu.cfs_quota_us");  // -1: none
    const std::optional<uint64_t> period_us = ReadNumber(folder + "/cpu.cfs_period_us");
    if (quota_us && period_us) cpus = std::min(cpus, QuotaCpus(*quota_us, *period_us));
  }
  return cpus;
}

}  // namespace cachalot
