#include "base/exposition.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <numeric>

#include <fmt/format.h>

#include "base/ascii.h"

namespace cachalot {
namespace {

bool BeginsLabel(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool BeginsName(char c) { return BeginsLabel(c) || c == ':'; }

std::optional<double> ParseNumber(std::string_view text) {
  if (text.starts_with('+')) {
    text.remove_prefix(1);
    if (text.starts_with('-')) return std::nullopt;
  }
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// One line that is no comment: NAME{LABEL="VALUE",...} VALUE TIMESTAMP.
class Line {
 public:
  explicit Line(std::string_view text) : text_(text) {}

  Status Read(Exposition* into) {
    std::string name = TakeName(BeginsName);
    if (name.empty()) return Invalid("expected the name of a metric");
    Exposition::Labels labels;
    SkipBlanks();
    if (Take('{')) CACHALOT_RETURN_IF_ERROR(ReadLabels(&labels));
    const std::optional<double> value = ParseNumber(TakeWord());
    if (!value) return Invalid("expected a number after the name and labels");
    const std::string_view stamp = TakeWord();
    int64_t milliseconds = 0;
    const auto [end, error] = std::from_chars(stamp.data(), stamp.data() + stamp.size(), milliseconds);
    if (!stamp.empty() && (error != std::errc() || end != stamp.data() + stamp.size())) {
      return Invalid("expected a time in milliseconds after the value");
    }
    if (!TakeWord().empty()) return Invalid("expected nothing after value and time");
    return into->Add(std::move(name), std::move(labels), *value);
  }

 private:
  Status ReadLabels(Exposition::Labels* labels) {
    SkipBlanks();
    while (!Take('}')) {
      std::string name = TakeName(BeginsLabel), value;
      SkipBlanks();
      if (name.empty() || !Take('=')) return Invalid("expected LABEL=\"VALUE\" or \"}\"");
      SkipBlanks();
      if (!Take('"') || !TakeValue(&value)) return Invalid("expected the label's value between quotes");
      labels->emplace_back(std::move(name), std::move(value));
      SkipBlanks();
      if (Take(',')) {
        SkipBlanks();
      } else if (!text_.starts_with('}')) {
        return Invalid("expected \",\" or \"}\" after a label");
      }
    }
    return OkStatus();
  }

  // Up to the quote that ends it. False when there is none, or for an escape that is not known.
  bool TakeValue(std::string* value) {
    while (!text_.empty() && !text_.starts_with('"')) {
      char c = text_[0];
      text_.remove_prefix(1);
      if (c == '\\') {
        if (text_.empty()) return false;
        const char escaped = text_[0];
        if (escaped != '\\' && escaped != '"' && escaped != 'n') return false;
        c = escaped == 'n' ? '\n' : escaped;
        text_.remove_prefix(1);
      }
      value->push_back(c);
    }
    return Take('"');
  }

  std::string TakeName(bool (*begins)(char)) {
    size_t end = 0;
    while (end < text_.size() && (begins(text_[end]) || (end > 0 && IsDigit(text_[end])))) ++end;
    std::string name(text_.substr(0, end));
    text_.remove_prefix(end);
    return name;
  }
  std::string_view TakeWord() {
    SkipBlanks();
    const std::string_view word = text_.substr(0, text_.find_first_of(" \t"));
    text_.remove_prefix(word.size());
    return word;
  }
  bool Take(char c) {
    const bool there = text_.starts_with(c);
    if (there) text_.remove_prefix(1);
    return there;
  }
  void SkipBlanks() { text_.remove_prefix(std::min(text_.find_first_not_of(" \t"), text_.size())); }

  std::string_view text_;
};

}  // namespace

double BucketCounts::total() const { return std::accumulate(counts.begin(), counts.end(), 0.0); }

std::optional<BucketCounts::Range> BucketCounts::Quantile(double share) const {
  const double all = total(), wanted = share * all;
  double passed = 0, above = 0;
  for (size_t i = 0; i < counts.size() && all > 0; ++i) {
    passed += counts[i];
    const double bound = i < bounds.size() ? bounds[i] : std::numeric_limits<double>::infinity();
    if (counts[i] > 0 && passed >= wanted) return Range{above, bound};
    above = bound;
  }
  return std::nullopt;
}

Status Exposition::Add(std::string name, Labels labels, double value) {
  std::ranges::sort(labels);
  const auto same_label = [](const auto& a, const auto& b) { return a.first == b.first; };
  if (std::ranges::adjacent_find(labels, same_label) != labels.end()) return Invalid("a label stands there twice");
  if (!series_.emplace(std::pair(std::move(name), std::move(labels)), value).second) {
    return Invalid("the same name and labels stood on a line before");
  }
  return OkStatus();
}

std::optional<double> Exposition::Find(std::string_view name, Labels labels) const {
  std::ranges::sort(labels);
  const auto found = series_.find({std::string(name), std::move(labels)});
  if (found == series_.end()) return std::nullopt;
  return found->second;
}

std::optional<BucketCounts> Exposition::FindBuckets(const std::string& name) const {
  std::map<double, double> up_to;  // counts, by bound
  const std::string bucket = name + "_bucket";
  for (auto it = series_.lower_bound({bucket, {}}); it != series_.end() && it->first.first == bucket; ++it) {
    const Labels& labels = it->first.second;
    if (labels.size() != 1 || labels[0].first != "le") return std::nullopt;
    const std::optional<double> bound = ParseNumber(labels[0].second);
    if (!bound || !(*bound > -std::numeric_limits<double>::infinity())) return std::nullopt;
    up_to[*bound] = it->second;
  }
  const std::optional<double> sum = Find(name + "_sum");
  if (!sum || up_to.empty() || !std::isinf(up_to.rbegin()->first)) return std::nullopt;
  BucketCounts counts{.bounds = {}, .counts = {}, .sum = *sum};
  double before = 0;
  for (const auto& [bound, count] : up_to) {
    if (!(count >= before)) return std::nullopt;
    counts.counts.push_back(count - before);
    if (!std::isinf(bound)) counts.bounds.push_back(bound);
    before = count;
  }
  return counts;
}

Result<Exposition> ParseExposition(std::string_view text) {
  Exposition exposition;
  for (size_t number = 1; !text.empty(); ++number) {
    const size_t end = text.find('\n');
    if (end == std::string_view::npos) return Invalid(fmt::format("line {}: expected a line break at its end", number));
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end + 1);
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    if (line.empty() || line.starts_with('#')) continue;
    const Status status = Line(line).Read(&exposition);
    if (!status.ok()) return status.Annotate(fmt::format("line {}", number));
  }
  return exposition;
}

}  // namespace cachalot
